/** For the project `docker`: one engine for all files, with an image and, if runsc exists, a runtime for it. */
import { execFileSync } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestProject } from "vitest/node";
import { whyNoServices } from "../../../../../../test/kit/services/debian-programs.ts";
import { startDocker } from "../../../../../../test/kit/services/docker.ts";
import { importHostImage } from "../../../../../../test/kit/services/host-image.ts";
import { BUILT_AGENT, whyNoAgent } from "./agent.ts";

export interface DockerService {
  readonly host: string;
  /** The variables with which the `docker` program finds the engine. */
  readonly env: Readonly<Record<string, string>>;
  /** An image whose programs are this machine's, mounted. */
  readonly image: string;
  readonly network: string;
  /** Names of runtimes that keep files, and of one that does not; none without runsc. */
  readonly runsc: { readonly keeping: string; readonly losing: string } | undefined;
  readonly agentPath: string;
}

declare module "vitest" {
  interface ProvidedContext {
    docker: DockerService | { readonly missing: string };
  }
}

export default async function setUp(project: TestProject): Promise<() => Promise<void>> {
  const missing = whyNoServices() ?? whyNoAgent();
  if (missing !== undefined) {
    project.provide("docker", { missing });
    return async () => {};
  }
  const { service, stop } = await startDockerService();
  project.provide("docker", service);
  return stop;
}

/** `experimental`: an engine that may save memory. */
export async function startDockerService({ experimental = false } = {}): Promise<{
  readonly service: DockerService;
  readonly stop: () => Promise<void>;
}> {
  const folder = await mkdtemp(join(tmpdir(), "sbx-dockerd-"));
  const runsc = process.env["SANDBOXER_TEST_RUNSC"];
  const runtimes = runsc === undefined ? {} : runscRuntimes(runsc);
  await writeFile(join(folder, "daemon.json"), JSON.stringify({ runtimes, experimental }));
  const docker = await startDocker([`--config-file=${join(folder, "daemon.json")}`]);
  const network = "sandboxes";
  await docker.docker("network", "create", network);
  const service = {
    host: docker.host,
    env: docker.env,
    image: await importHostImage(docker),
    network,
    runsc: runsc === undefined ? undefined : { keeping: "runsc-keeping", losing: "runsc-losing" },
    agentPath: BUILT_AGENT,
  };
  const stop = async (): Promise<void> => {
    await docker.stop();
    await rm(folder, { recursive: true, force: true });
  };
  return { service, stop };
}

function runscRuntimes(path: string): Record<string, unknown> {
  const version = execFileSync(path, ["--version"], { encoding: "utf8" });
  const shared = [
    `--platform=${process.env["SANDBOXER_TEST_PLATFORM"] ?? "systrap"}`,
    // Before 2025 it takes every network namespace of a newer kernel for the host's, and refuses it.
    ...(/\b2024\d{4}/.test(version) ? ["--network=none"] : []),
  ];
  return {
    "runsc-keeping": { path, runtimeArgs: [...shared, "--overlay2=none"] },
    "runsc-losing": { path, runtimeArgs: shared },
  };
}
