import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { installGoProgram } from "./go-server.ts";
import { newS3Store, S3_KEY_ID, S3_SECRET, setS3Credentials } from "./s3-buckets.ts";
import { startServer } from "./server-process.ts";
import { type RunningStoreServer, SERVERS_FOLDER, type StoreServer } from "./test-server.ts";

/** The last of the archived repository. */
const VERSION = "v0.0.0-20260212201848-7aac2a2c5b7c";

export const minio: StoreServer = {
  name: "MinIO",
  origin: "built from its source with Go, in 5 to 10 minutes: no package registry or Debian archive has it",
  program: join(SERVERS_FOLDER, `minio-${VERSION}`),

  async prepare(signal) {
    await installGoProgram(`github.com/minio/minio@${VERSION}`, this.program, signal);
  },

  async start(address = "127.0.0.1"): Promise<RunningStoreServer> {
    const folder = await mkdtemp(join(tmpdir(), "sandboxer-minio-"));
    const server = await startServer(
      (port) => [this.program, "server", "--quiet", "--address", `${address}:${port}`, folder],
      { MINIO_ROOT_USER: S3_KEY_ID, MINIO_ROOT_PASSWORD: S3_SECRET, MINIO_BROWSER: "off", MINIO_UPDATE: "off" },
      "/minio/health/ready",
      address,
    );
    setS3Credentials();
    return {
      endpoint: server.endpoint,
      newStore: async (seenAt = server.endpoint) => await newS3Store(server.endpoint, seenAt),
      stop: async () => {
        await server.stop();
        await rm(folder, { recursive: true, force: true });
      },
    };
  },
};
