import type { ObjectStore } from "../store/store.ts";
import { unlessDamaged } from "../support/record-damage.ts";
import { type CollectionContext, type Findings, type Garbage, together } from "./garbage.ts";

const PROBE = /^probe-[0-9a-f-]{36}$/;

/** A server that tests the store changes something more often than this, on this process's own clock. */
const STILL_MS = 30_000;

interface Sighting extends Garbage {
  /** The contents of the folder, including versions. */
  readonly contents: string;
}

export interface ProbeSightings {
  readonly sinceMs: number;
  readonly sightings: readonly Sighting[];
}

export async function sightProbes({ store, clock }: CollectionContext): Promise<ProbeSightings> {
  const sinceMs = clock.monotonicMs();
  const sightings: Sighting[] = [];
  for await (const folder of store.listFolders("")) {
    if (PROBE.test(folder)) sightings.push(await sight(store, folder));
  }
  return { sinceMs, sightings };
}

/** Removes folders that have not changed for long enough since they were first seen. */
export async function collectProbes(
  { store, clock, apply, signal }: CollectionContext,
  { sinceMs, sightings }: ProbeSightings,
): Promise<Findings> {
  if (!apply || sightings.length === 0) return { garbage: sightings.map(asGarbage), left: [] };
  await clock.sleep(Math.max(0, sinceMs + STILL_MS - clock.monotonicMs()), signal);
  const parts: Findings[] = [];
  for (const seen of sightings) {
    const now = await sight(store, seen.key);
    const still = now.contents === seen.contents;
    if (still) await store.deleteTree(seen.key);
    parts.push(
      still ? { garbage: [asGarbage(now)], left: [] } : { garbage: [], left: [{ key: seen.key, reason: "in use" }] },
    );
  }
  return together(parts);
}

async function sight(store: ObjectStore, folder: string): Promise<Sighting> {
  const contents: string[] = [];
  let sizeBytes = 0;
  for await (const listed of store.list(folder)) {
    contents.push(`${listed.key} ${listed.sizeBytes}`);
    sizeBytes += listed.sizeBytes;
  }
  for await (const key of store.listCells(folder)) {
    const cell = await store.readCell(key).catch(unlessDamaged);
    contents.push(`${key} ${cell === "damaged" ? cell : cell?.version}`);
  }
  return { kind: "probe", key: folder, sizeBytes, contents: contents.toSorted().join("\n") };
}

function asGarbage({ kind, key, sizeBytes }: Garbage): Garbage {
  return { kind, key, sizeBytes };
}
