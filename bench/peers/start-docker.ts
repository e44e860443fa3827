import { execFileSync } from "node:child_process";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { debianPrograms, prepareDebianPrograms, whyNoServices } from "../../test/kit/services/debian-programs.ts";
import { startDocker } from "../../test/kit/services/docker.ts";
import { importHostImage } from "../../test/kit/services/host-image.ts";
import type { Lab } from "../lab.ts";

export interface BenchDocker {
  readonly address: string;
  /** An image whose programs are this machine's, mounted from `/usr`. */
  readonly image: string;
  readonly runscRuntime: string;
}

/**
 * A separate engine with the server's runsc as a second runtime and with experimental checkpoints turned on; its
 * runtimes find programs such as CRIU in `moreFolders`. A text says why there is none.
 */
export async function startBenchDocker(lab: Lab, moreFolders: readonly string[]): Promise<BenchDocker | string> {
  await prepareDebianPrograms(lab.progress);
  const missing = whyNoServices();
  if (missing !== undefined) return missing;
  const runscRuntime = "runsc-keeping";
  const configuration = join(lab.scratch, "daemon.json");
  await writeFile(configuration, JSON.stringify({ experimental: true, runtimes: { [runscRuntime]: runtimeOf(lab) } }));
  const docker = await startDocker([`--config-file=${configuration}`], moreFolders);
  lab.cleanUp.add(() => docker.stop());
  lab.versions["Docker"] = (await docker.docker("version", "--format", "{{.Server.Version}}")).trim();
  lab.versions["runc"] = versionOfRunc();
  return { address: docker.host, image: await importHostImage(docker), runscRuntime };
}

function runtimeOf({ engine }: Lab): { path: string; runtimeArgs: string[] } {
  const flags = [
    `--platform=${engine.platform}`,
    // Files go to the container's own layer, where a commit finds them.
    "--overlay2=none",
    // Before 2025 runsc mistakes every network namespace of a newer kernel for the host's, and refuses it.
    ...(/^2024\d{4}/.test(engine.version) ? ["--network=none"] : []),
  ];
  return { path: engine.path, runtimeArgs: flags };
}

function versionOfRunc(): string {
  const said = execFileSync(join(debianPrograms.bin, "runc"), ["--version"], { encoding: "utf8" });
  return /^runc version (\S+)/.exec(said)?.[1] ?? "unknown";
}
