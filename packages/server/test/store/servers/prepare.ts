/**
 * Gets the servers that the tests of the stores run against: `node packages/server/test/store/servers/prepare.ts`.
 * What is there already is left alone. Exits with 1 when one cannot be had.
 */
import { fakeGcsServer } from "./fake-gcs-server.ts";
import { minio } from "./minio.ts";
import { moto } from "./moto.ts";
import { whyMissing } from "./test-server.ts";

const LIMIT_MS = 12 * 60_000;

for (const server of [fakeGcsServer, moto, minio]) {
  if (whyMissing(server) === undefined) continue;
  process.stdout.write(`set-up: getting ${server.name} for the tests of the stores; this takes some minutes\n`);
  try {
    await server.prepare(AbortSignal.timeout(LIMIT_MS));
    process.stdout.write(`set-up: done: ${server.program}\n`);
  } catch (error) {
    process.stdout.write(`set-up: failed: ${server.name}: ${(error as Error).message}\n`);
    process.exitCode = 1;
  }
}
