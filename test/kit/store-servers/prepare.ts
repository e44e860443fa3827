/**
 * Gets the servers that the tests of the stores run against: `node test/kit/store-servers/prepare.ts`.
 * Existing ones are left alone. Exits with 1 when one cannot be had.
 */
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { acquireFileLock } from "../../../packages/server/src/support/file-lock.ts";
import { withProgress } from "../progress.ts";
import { fakeGcsServer } from "./fake-gcs-server.ts";
import { minio } from "./minio.ts";
import { moto } from "./moto.ts";
import { storageTestbench } from "./storage-testbench.ts";
import { SERVERS_FOLDER, whyMissing, type StoreServer } from "./test-server.ts";

const LIMIT_MS = 20 * 60_000;
const SERVERS: readonly StoreServer[] = [fakeGcsServer, moto, minio, storageTestbench];

/**
 * Returns whether all exist now. One test run at a time builds, because builds take all processors; another one waits,
 * and uses the result.
 */
export async function prepareStoreServers(report: (line: string) => void): Promise<boolean> {
  if (SERVERS.every((server) => whyMissing(server) === undefined)) return true;
  const onWait = (): void => report("set-up: waiting for another run of tests, which gets the same test servers");
  const lock = await acquireFileLock(join(SERVERS_FOLDER, "prepare.lock"), { waitMs: 4 * LIMIT_MS, onWait });
  try {
    return await prepareMissing(report);
  } finally {
    await lock?.release();
  }
}

async function prepareMissing(report: (line: string) => void): Promise<boolean> {
  const missing = SERVERS.filter((server) => whyMissing(server) !== undefined);
  if (missing.length > 0) {
    report(`set-up: the suites stores and chaos need servers that are kept in ${SERVERS_FOLDER} from now on:`);
    for (const { name, origin } of missing) report(`set-up:   ${name}: ${origin}`);
  }
  let complete = true;
  for (const server of missing) {
    try {
      await withProgress(report, `getting ${server.name}`, () => server.prepare(AbortSignal.timeout(LIMIT_MS)));
    } catch (error) {
      const isOptional = server.optional === true;
      const last = (error as Error).message.split("\n").at(-1);
      report(`set-up: ${isOptional ? `going on without ${server.name}` : `failed: ${server.name}`}: ${last}`);
      complete &&= isOptional;
    }
  }
  return complete;
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  const complete = await prepareStoreServers((line) => process.stdout.write(`${line}\n`));
  process.exitCode = complete ? 0 : 1;
}
