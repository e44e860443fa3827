import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, it } from "vitest";
import { fakeGcsServer } from "../../../../test/kit/store-servers/fake-gcs-server.ts";
import { minio } from "../../../../test/kit/store-servers/minio.ts";
import { withServer } from "../../../../test/kit/store-servers/with-server.ts";

const PROGRAM = fileURLToPath(new URL("./stream-through.ts", import.meta.url));

for (const server of [minio, fakeGcsServer]) {
  withServer(server, (running) => {
    it("a large blob passes without being held in memory", async () => {
      const address = await running().newStore();
      const { stdout } = await promisify(execFile)(process.execPath, [PROGRAM, address]);
      const { readBytes, largestMiB } = JSON.parse(stdout) as { readBytes: number; largestMiB: number };
      expect(readBytes).toBe(256 * 1024 * 1024);
      expect(largestMiB).toBeLessThan(400);
    });
  });
}
