import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";

export interface Spec {
  process: Record<string, unknown> & { args: string[]; env: string[] };
  linux: Record<string, unknown> & { cgroupsPath?: string; resources?: { memory: { limit: number } } };
}

/** PID 1 of a raw container. */
export interface Program {
  readonly args: readonly string[];
  /** The server runs programs as this user; its agent, as root. */
  readonly asUser: boolean;
  /** Instead of the server's default limits. */
  readonly memoryMb?: number;
}

/** The configuration of a live sandbox of the server, so that the raw one sees the same. */
export async function readServerSpec(runDirectory: string): Promise<Spec> {
  for (const instance of await readdir(runDirectory)) {
    const sandboxes = join(runDirectory, instance, "sandboxes");
    for (const sandbox of await readdir(sandboxes)) {
      return JSON.parse(await readFile(join(sandboxes, sandbox, "config.json"), "utf8")) as Spec;
    }
  }
  throw new Error(`There is no sandbox in ${runDirectory}.`);
}

export async function writeBundle(
  directory: string,
  base: Spec,
  program: Program,
  cgroupsPath: string | undefined,
): Promise<void> {
  const { cgroupsPath: _, ...linux } = base.linux;
  const user = {
    user: { uid: 1000, gid: 1000 },
    cwd: "/workspace",
    capabilities: {},
    env: ["PATH=/usr/local/bin:/usr/bin:/bin", "HOME=/workspace", "LANG=C.UTF-8"],
  };
  const { memoryMb } = program;
  const resources = memoryMb === undefined ? {} : { resources: { memory: { limit: memoryMb * 1024 * 1024 } } };
  const spec: Spec = {
    ...base,
    process: { ...base.process, ...(program.asUser ? user : {}), args: [...program.args] },
    linux: { ...linux, ...resources, ...(cgroupsPath === undefined ? {} : { cgroupsPath }) },
  };
  await mkdir(directory, { recursive: true });
  await writeFile(join(directory, "config.json"), JSON.stringify(spec));
}
