import { Buffer } from "node:buffer";
import { readFile } from "node:fs/promises";
import { pack } from "tar-stream";
import { AGENT_FOLDER, AGENT_PATH } from "../agent/agent-place.ts";

/**
 * The agent as an archive for the root of a container. It goes in with each start, also where the engine is on another
 * machine, so that a container that was made by an older server runs the agent of this one.
 */
export async function agentArchive(agentPath: string): Promise<Uint8Array> {
  const archive = pack();
  archive.entry({ name: `${AGENT_FOLDER.slice(1)}/`, type: "directory", mode: 0o755 });
  archive.entry({ name: AGENT_PATH.slice(1), mode: 0o555 }, await readFile(agentPath));
  archive.finalize();
  return Buffer.concat((await Array.fromAsync(archive)) as Buffer[]);
}
