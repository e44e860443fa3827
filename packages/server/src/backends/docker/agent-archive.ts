import { Buffer } from "node:buffer";
import { readFile } from "node:fs/promises";
import { pack } from "tar-stream";

const FOLDER = ".sandboxer";
const NAME = "sandboxer-agent";
export const AGENT_PATH = `/${FOLDER}/${NAME}`;

/**
 * The agent as an archive for the root of a container. It goes in with each start, also where the engine is on another
 * machine, so that a container that was made by an older server runs the agent of this one.
 */
export async function agentArchive(agentPath: string): Promise<Uint8Array> {
  const archive = pack();
  archive.entry({ name: `${FOLDER}/`, type: "directory", mode: 0o755 });
  archive.entry({ name: `${FOLDER}/${NAME}`, mode: 0o555 }, await readFile(agentPath));
  archive.finalize();
  return Buffer.concat((await Array.fromAsync(archive)) as Buffer[]);
}
