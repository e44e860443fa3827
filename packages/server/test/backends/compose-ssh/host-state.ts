import { execFile } from "node:child_process";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { askEngine } from "../../../../../test/kit/services/ask-engine.ts";
import { debianPrograms } from "../../../../../test/kit/services/debian-programs.ts";
import type { ExtensionServices } from "../../../../../test/kit/services/extension-services.ts";

const run = promisify(execFile);

/** Everything of sandboxes on a host: files below its base folder, and Docker objects with a compose label. */
export async function hostState(services: ExtensionServices, baseDir: string): Promise<string[]> {
  const files = await Promise.all(
    ["sandboxes", "snapshots"].map(async (name) =>
      (await readdir(join(baseDir, name)).catch(() => [])).map((entry) => `${name}/${entry}`),
    ),
  );
  const host = services.docker.host;
  const filters = { label: ["com.docker.compose.project"] };
  const [containers, networks, { Volumes: volumes }] = await Promise.all([
    askEngine<{ Id: string }[]>(host, "/containers/json", filters),
    askEngine<{ Id: string }[]>(host, "/networks", filters),
    askEngine<{ Volumes: { Name: string }[] | null }>(host, "/volumes", filters),
  ]);
  return [
    ...files.flat(),
    ...containers.map(({ Id }) => `container ${Id}`),
    ...networks.map(({ Id }) => `network ${Id}`),
    ...(volumes ?? []).map(({ Name }) => `volume ${Name}`),
  ];
}

export async function docker(services: ExtensionServices, ...args: readonly string[]): Promise<string> {
  const { stdout } = await run(join(debianPrograms.bin, "docker"), args, {
    env: { ...process.env, ...services.docker.env },
  });
  return stdout.trim();
}
