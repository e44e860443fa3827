import { execFile } from "node:child_process";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { debianPrograms } from "../../services/debian-programs.ts";
import type { ExtensionServices } from "../../services/extension-services.ts";

const run = promisify(execFile);

/** Everything of sandboxes on a host: files below its base folder, and what Docker has with a compose project's label. */
export async function hostState(services: ExtensionServices, baseDir: string): Promise<string[]> {
  const files = await Promise.all(
    ["sandboxes", "snapshots"].map(async (name) =>
      (await readdir(join(baseDir, name)).catch(() => [])).map((entry) => `${name}/${entry}`),
    ),
  );
  const label = ["--filter", "label=com.docker.compose.project"];
  const docker = await Promise.all([
    listed(services, "container", ["ps", "-aq", ...label]),
    listed(services, "network", ["network", "ls", "-q", ...label]),
    listed(services, "volume", ["volume", "ls", "-q", ...label]),
  ]);
  return [...files.flat(), ...docker.flat()];
}

export async function docker(services: ExtensionServices, ...args: readonly string[]): Promise<string> {
  const { stdout } = await run(join(debianPrograms.bin, "docker"), args, {
    env: { ...process.env, ...services.docker.env },
  });
  return stdout.trim();
}

async function listed(services: ExtensionServices, what: string, args: readonly string[]): Promise<string[]> {
  const output = await docker(services, ...args);
  return output.split("\n").flatMap((id) => (id === "" ? [] : [`${what} ${id}`]));
}
