import { join } from "node:path";
import { newGcsStore } from "./gcs-buckets.ts";
import { installGoProgram } from "./go-server.ts";
import { startServer } from "./server-process.ts";
import { type RunningStoreServer, SERVERS_FOLDER, type StoreServer } from "./test-server.ts";

const VERSION = "v1.56.1";

export const fakeGcsServer: StoreServer = {
  name: "fake-gcs-server",
  origin: "built from its source with Go, in 1 to 3 minutes: no package registry or Debian archive has it",
  program: join(SERVERS_FOLDER, `fake-gcs-server-${VERSION}`),

  async prepare(signal) {
    await installGoProgram(`github.com/fsouza/fake-gcs-server@${VERSION}`, this.program, signal);
  },

  /** In memory: on a file system it has no generations. */
  async start(): Promise<RunningStoreServer> {
    const server = await startServer((port) => [
      this.program,
      "-backend=memory",
      "-scheme=http",
      "-log-level=error",
      "-host=127.0.0.1",
      `-port=${port}`,
    ]);
    return {
      endpoint: server.endpoint,
      newStore: async (seenAt = server.endpoint) => await newGcsStore(server.endpoint, seenAt),
      stop: server.stop,
    };
  },
};
