/**
 * Gets the servers that the tests of the stores run against: `node test/kit/store-servers/prepare.ts`.
 * What is there already is left alone. Exits with 1 when one cannot be had.
 */
import { pathToFileURL } from "node:url";
import { fakeGcsServer } from "./fake-gcs-server.ts";
import { minio } from "./minio.ts";
import { moto } from "./moto.ts";
import { storageTestbench } from "./storage-testbench.ts";
import { whyMissing } from "./test-server.ts";

const LIMIT_MS = 12 * 60_000;

/** Gives whether all are there now. */
export async function prepareStoreServers(report: (line: string) => void): Promise<boolean> {
  let complete = true;
  for (const server of [fakeGcsServer, moto, minio, storageTestbench]) {
    if (whyMissing(server) === undefined) continue;
    report(`set-up: getting ${server.name} for the tests of the stores; this takes some minutes`);
    try {
      await server.prepare(AbortSignal.timeout(LIMIT_MS));
      report(`set-up: done: ${server.program}`);
    } catch (error) {
      report(`set-up: failed: ${server.name}: ${(error as Error).message}`);
      complete &&= server.optional === true;
    }
  }
  return complete;
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  const complete = await prepareStoreServers((line) => process.stdout.write(`${line}\n`));
  process.exitCode = complete ? 0 : 1;
}
