import { SandboxerError } from "@sandboxer/protocol";
import { AGENT_FOLDER } from "../agent/agent-place.ts";
import type { DockerSandbox } from "./docker-sandbox.ts";
import type { DockerEngine } from "./engine/docker-engine.ts";

const MARK = `${AGENT_FOLDER}/seen-by-the-engine`;

/**
 * Refuses a runtime that keeps what is written to itself: a stopped sandbox would lose its files, and a snapshot would
 * have none. runsc does so unless it is told `--overlay2=none`.
 * https://gvisor.dev/docs/user_guide/filesystem/
 */
export async function checkPersistence(engine: DockerEngine, sandbox: DockerSandbox, runtime: string): Promise<void> {
  await sandbox.rootFiles.write(MARK, new Uint8Array());
  if (await engine.hasPath(sandbox.containerId, MARK)) return sandbox.rootFiles.remove(MARK);
  throw new SandboxerError(
    "backend_unavailable",
    `The runtime ${runtime} keeps files where Docker does not see them.`,
    {
      hint: `In the engine's daemon.json, give the runtime the arguments "runtimeArgs": ["--overlay2=none"], and restart the engine.`,
    },
  );
}
