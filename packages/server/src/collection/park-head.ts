import { randomUUID } from "node:crypto";
import type { Head } from "@sandboxer/protocol";
import { settleSwap } from "../lease/cell-swap.ts";
import { claim, type Move, release, type Stamp } from "../lease/head.ts";
import { decodeRecord, encodeHead } from "../lease/head-codec.ts";
import { headKey } from "../lease/stored-head.ts";
import type { Cell } from "../store/store.ts";
import type { CollectionContext } from "./garbage.ts";

/**
 * Releases a sandbox of a dead owner in one swap. A dead record does not prevent a publication that the owner sent
 * before: only a head of a later epoch does. Returns the version of the new head, or undefined if the head has moved.
 */
export async function parkForDeadOwner(
  { store, clock, signal }: CollectionContext,
  sandboxId: string,
  present: { readonly head: Head; readonly version: string },
  deadOwner: string,
): Promise<string | undefined> {
  const collector = randomUUID();
  const stamp = (): Stamp => ({ nonce: randomUUID(), now: new Date(clock.wallMs()).toISOString() });
  const claimed = move(present.head, claim(collector, deadOwner), stamp());
  const parked = claimed && move(claimed, release({ instanceId: collector, epoch: claimed.epoch }), stamp());
  if (parked === undefined) return undefined;
  const isOurs = ({ body }: Cell): boolean => {
    const found = decodeRecord(sandboxId, body);
    return "head" in found && found.head.nonce === parked.nonce;
  };
  const settled = await settleSwap(store, clock, {
    key: headKey(sandboxId),
    expected: present.version,
    body: encodeHead(parked),
    isOurs,
    ...(signal === undefined ? {} : { signal }),
  });
  return settled.outcome === "written" ? settled.present.version : undefined;
}

function move(head: Head, by: Move, stamp: Stamp): Head | undefined {
  const result = by(head, stamp);
  return "head" in result ? result.head : undefined;
}
