import { mkdir, mkdtemp, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { newGcsStore } from "./gcs-buckets.ts";
import { runProgram } from "./run-program.ts";
import { startServer } from "./server-process.ts";
import { type RunningStoreServer, SERVERS_FOLDER, type StoreServer } from "./test-server.ts";

const VERSION = "0.45.0";
const SOURCE = `https://github.com/googleapis/storage-testbench/archive/refs/tags/v${VERSION}.tar.gz`;
const FOLDER = join(SERVERS_FOLDER, `storage-testbench-${VERSION}`);

/** Google's own, against which it tests its clients. Its source is on GitHub only, which not every machine can reach. */
export const storageTestbench: StoreServer = {
  name: "Google storage-testbench",
  program: FOLDER,
  origin: "a Python package from GitHub, which not every machine can reach",
  optional: true,

  async prepare(signal) {
    await mkdir(SERVERS_FOLDER, { recursive: true });
    const scratch = await mkdtemp(join(SERVERS_FOLDER, "installing-"));
    try {
      const install = ["install", "--quiet", "--retries", "0", "--timeout", "15", "--target", scratch, SOURCE];
      await runProgram(["python3", "-m", "pip", ...install], { signal });
      await rename(scratch, FOLDER);
    } finally {
      await rm(scratch, { recursive: true, force: true });
    }
  },

  async start(): Promise<RunningStoreServer> {
    const server = await startServer(
      (port) => ["python3", "-m", "gunicorn", `--bind=127.0.0.1:${port}`, "--threads=8", "testbench:run()"],
      { PYTHONPATH: FOLDER },
    );
    return {
      endpoint: server.endpoint,
      newStore: async (seenAt = server.endpoint) => await newGcsStore(server.endpoint, seenAt),
      stop: server.stop,
    };
  },
};
