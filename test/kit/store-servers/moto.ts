import { mkdir, mkdtemp, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { runProgram } from "./run-program.ts";
import { newS3Store, setS3Credentials } from "./s3-buckets.ts";
import { startServer } from "./server-process.ts";
import { type RunningStoreServer, SERVERS_FOLDER, type StoreServer } from "./test-server.ts";

const VERSION = "5.2.5";
const PACKAGES = [`moto[s3]==${VERSION}`, "flask==3.1.3", "flask-cors==6.0.5", "waitress==3.0.2"];
const FOLDER = join(SERVERS_FOLDER, `moto-${VERSION}`);

/** With one thread: with more of them two writers may win. */
const SERVE = [
  "import sys",
  "from moto.server import DomainDispatcherApplication, create_backend_app",
  "from waitress import serve",
  "app = DomainDispatcherApplication(create_backend_app)",
  "serve(app, host='127.0.0.1', port=int(sys.argv[1]), threads=1)",
].join("\n");

export const moto: StoreServer = {
  name: "moto",
  origin: "from the Python package index",
  program: FOLDER,

  async prepare(signal) {
    await mkdir(SERVERS_FOLDER, { recursive: true });
    const scratch = await mkdtemp(join(SERVERS_FOLDER, "installing-"));
    try {
      await runProgram(["python3", "-m", "pip", "install", "--quiet", "--target", scratch, ...PACKAGES], { signal });
      await rename(scratch, FOLDER);
    } finally {
      await rm(scratch, { recursive: true, force: true });
    }
  },

  async start(): Promise<RunningStoreServer> {
    const server = await startServer((port) => ["python3", "-c", SERVE, `${port}`], { PYTHONPATH: FOLDER });
    setS3Credentials();
    return {
      endpoint: server.endpoint,
      newStore: async (seenAt = server.endpoint) => await newS3Store(server.endpoint, seenAt),
      stop: server.stop,
    };
  },
};
