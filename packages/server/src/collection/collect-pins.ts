import type { SightedPin } from "../checkpoints/packs/pins.ts";
import { readStoredRecord } from "../lease/stored-head.ts";
import { sightSnapshots } from "./collect-snapshots.ts";
import { type CollectionContext, type Findings, leftAlone, NOTHING, together } from "./garbage.ts";
import { parkForDeadOwner } from "./park-head.ts";
import { isGone, readServers } from "./servers.ts";
import { type Survey, surveyHeads } from "./survey.ts";

/**
 * Removes the pins of servers that are dead and cannot publish any more. They were honoured in this collection. Heads
 * and records are read after the pins: a writer has a head or a record before it pins anything, so a writer without one
 * now can publish nothing.
 */
export async function collectPins(context: CollectionContext, pins: readonly SightedPin[]): Promise<Findings> {
  const ofGone = await pinsOfGone(context, pins);
  if (ofGone.length === 0) return NOTHING;
  const survey = await surveyHeads(context.store);
  const saving = new Set<string>();
  let isReadable = survey.complete;
  for (const { record } of await sightSnapshots(context)) {
    if (record === "unreadable") isReadable = false;
    else if (record !== "absent" && record.state === "saving") saving.add(record.publisher);
  }
  const parts: Findings[] = [];
  for (const { key, pin } of ofGone) {
    if (!isReadable) parts.push(leftAlone(key, "a head that cannot be read may name it"));
    else if (saving.has(pin.publisher)) parts.push(leftAlone(key, "a save may be in progress"));
    else if (!(await takeFrom(context, pin.publisher, survey)))
      parts.push(leftAlone(key, "claimed by a server meanwhile"));
    else {
      const sizeBytes = (await context.store.stat(key))?.sizeBytes ?? 0;
      if (context.apply) await context.store.delete(key);
      parts.push({ garbage: [{ kind: "pin", key, sizeBytes }], left: [] });
    }
  }
  return together(parts);
}

async function pinsOfGone({ store }: CollectionContext, pins: readonly SightedPin[]): Promise<readonly SightedPin[]> {
  if (pins.length === 0) return [];
  const servers = await readServers(store);
  const gone: SightedPin[] = [];
  for (const sighted of pins) {
    const { publisher } = sighted.pin;
    // Without a name, nothing is known about it.
    if (publisher !== "" && (await isGone(store, servers, publisher))) gone.push(sighted);
  }
  return gone;
}

/** Takes a dead server's sandboxes away from it, so that it cannot publish. False if one of the heads has moved. */
async function takeFrom(context: CollectionContext, publisher: string, { ownedBy }: Survey): Promise<boolean> {
  if (!context.apply) return true;
  for (const sandboxId of ownedBy.get(publisher) ?? []) {
    const present = await readStoredRecord(context.store, sandboxId);
    if (present === undefined || !("head" in present.stored)) continue;
    const { head } = present.stored;
    if (head.owner !== publisher) continue;
    const parked = await parkForDeadOwner(context, sandboxId, { head, version: present.version }, publisher);
    if (parked === undefined) return false;
  }
  return true;
}
