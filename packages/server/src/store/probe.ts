import { randomUUID } from "node:crypto";
import { SandboxerError } from "@sandboxer/protocol/errors";
import { systemClock } from "../support/clock.ts";
import { AmbiguousWriteError, type Cell, type ObjectStore, type SwapOutcome } from "./store.ts";

const MOST_RACERS = 16;
const ATTEMPTS = 6;

/**
 * Tests the guarantees that ownership depends on: a cell is created once, replaced only at its current version, and won
 * by one of many writers. Stores that ignore such conditions answer every write with success, so a test is the only way
 * to know. More `racers` than the store serves at once only wait for each other.
 */
export async function probeStore(store: ObjectStore, hint: string, racers = MOST_RACERS): Promise<void> {
  const folder = `probe-${randomUUID()}`;
  try {
    await probeCells(store, folder, racers);
    await probeBlobs(store, `${folder}/blob`);
  } catch (error) {
    if (error instanceof SandboxerError) throw error;
    const reason = error instanceof Error ? error.message : String(error);
    throw new SandboxerError("store_unavailable", `The store ${store.address} cannot be used: ${reason}.`, {
      cause: error,
      hint,
    });
  } finally {
    await store.deleteTree(folder).catch(() => undefined);
  }
}

async function probeCells(store: ObjectStore, folder: string, racers: number): Promise<void> {
  const key = `${folder}/cell.json`;
  const first = await swap(store, key, undefined, "first");
  if (first.outcome !== "written") throw new Error("it refuses to create a new object");
  await refuses(store, key, undefined, "it lets an existing object be created again");

  const second = await swap(store, key, first.version, "second");
  if (second.outcome !== "written") throw new Error("it refuses to replace an object at its current version");
  await refuses(store, key, first.version, "it lets an object be replaced at an old version");
  await refuses(store, `${folder}/missing.json`, first.version, "it lets a missing object be replaced");
  await holds(store, key, "second");

  const race = await Promise.all(
    Array.from({ length: racers }, (_, racer) => swap(store, key, second.version, `racer ${racer}`)),
  );
  const winners = race.flatMap((result, racer) => (result.outcome === "written" ? [racer] : []));
  if (winners.length !== 1) throw new Error(`${winners.length} of ${racers} racing writers were told they had won`);
  await holds(store, key, `racer ${winners[0]}`);
}

async function probeBlobs(store: ObjectStore, key: string): Promise<void> {
  const bytes = Buffer.from("probe");
  const first = await store.write(key, [bytes], { ifAbsent: true });
  if (first.outcome !== "written") throw new Error("it refuses to create a new object");
  const again = await store.write(key, [bytes], { ifAbsent: true });
  if (again.outcome !== "conflict") throw new Error("it lets an existing object be created again");
  const found = await store.stat(key);
  if (found?.sizeBytes !== bytes.byteLength) throw new Error("an object that was just written is missing");
}

async function refuses(
  store: ObjectStore,
  key: string,
  expected: string | undefined,
  otherwise: string,
): Promise<void> {
  const result = await swap(store, key, expected, "never");
  if (result.outcome !== "conflict") throw new Error(otherwise);
}

async function holds(store: ObjectStore, key: string, text: string): Promise<void> {
  const cell = await readPatiently(store, key);
  const found = cell === undefined ? "nothing" : `"${Buffer.from(cell.body).toString()}"`;
  if (found !== `"${text}"`) throw new Error(`"${text}" was written but ${found} was read back`);
}

/** Unclear answers are retried: some stores throttle frequent writes to one object. */
async function swap(store: ObjectStore, key: string, expected: string | undefined, text: string): Promise<SwapOutcome> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await store.swapCell(key, expected, Buffer.from(text));
    } catch (error) {
      if (!(error instanceof AmbiguousWriteError)) throw error;
      const found = await readPatiently(store, key);
      const applied = found !== undefined && Buffer.from(found.body).toString() === text;
      if (applied) return { outcome: "written", version: found.version };
      if (found?.version !== expected) return { outcome: "conflict" };
      if (attempt === ATTEMPTS) {
        throw new Error(`it gives no clear answer to a conditional write: ${causeOf(error)}`, { cause: error });
      }
      await backOff(attempt);
    }
  }
}

/** A store that is slow under the racing writes answers later: a server may start beside a busy one. */
async function readPatiently(store: ObjectStore, key: string): Promise<Cell | undefined> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await store.readCell(key);
    } catch (error) {
      const isAway = error instanceof SandboxerError && error.code === "store_unavailable";
      if (!isAway || attempt === ATTEMPTS) throw error;
      await backOff(attempt);
    }
  }
}

async function backOff(attempt: number): Promise<void> {
  await systemClock.sleep(Math.random() * 250 * 2 ** attempt);
}

function causeOf(error: Error): string {
  return error.cause instanceof Error ? error.cause.message : error.message;
}
