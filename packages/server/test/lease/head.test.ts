import { type Head, headSchema, type Promotion } from "@sandboxer/protocol";
import fc from "fast-check";
import { expect, it } from "vitest";
import {
  claim,
  destroy,
  type Move,
  newHead,
  publishCheckpoint,
  release,
  replaceState,
  updateDetails,
} from "../../src/lease/head.ts";
import { decodeRecord, encodeHead } from "../../src/lease/head-codec.ts";
import { checkpoint, newSandbox } from "./samples.ts";

const INSTANCES = ["a", "b", "c"];

const attempts = fc.array(
  fc.record({
    kind: fc.constantFrom(
      "claim",
      "takeover",
      "publish",
      "release",
      "releaseWith",
      "update",
      "rewind",
      "promote",
      "destroy",
    ),
    by: fc.constantFrom(...INSTANCES),
    /** How far behind the epoch is that the instance believes in. */
    staleness: fc.constantFrom(0, 0, 0, 1),
  }),
  { maxLength: 60 },
);

function moveOf(kind: string, by: string, epoch: number, head: Head, number: number): Move {
  const owner = { instanceId: by, epoch };
  if (kind === "claim") return claim(by);
  if (kind === "takeover") return claim(by, head.owner ?? undefined);
  if (kind === "publish") return publishCheckpoint(owner, checkpoint(number));
  if (kind === "release") return release(owner);
  if (kind === "releaseWith") return release(owner, checkpoint(number));
  if (kind === "update") return updateDetails(owner, { status: `status ${number}` });
  if (kind === "rewind") return replaceState(owner, { checkpoint: checkpoint(number) });
  if (kind === "promote") return replaceState(owner, { checkpoint: checkpoint(number), promotion: promotion(number) });
  return destroy(owner);
}

function promotion(number: number): Promotion {
  return { sandbox_id: `fork-${number}`, former: `snapshot-${number}`, promoted_at: timeOf(number), ends: [] };
}

function timeOf(second: number): string {
  return new Date(second * 1000).toISOString();
}

/** Destruction is rare, so that long lives are seen too. */
const lives = fc
  .tuple(attempts, fc.boolean())
  .map(([list, mortal]) => list.filter(({ kind }) => mortal || kind !== "destroy"));

it("keeps its promises whatever is attempted", () => {
  fc.assert(
    fc.property(lives, (life) => {
      let head: Head = {
        ...newHead("a", newSandbox(), { nonce: "n0", now: timeOf(0) }),
        of_a_later_release: { kept: true },
      };
      const nonces = ["n0"];
      for (const [index, { kind, by, staleness }] of life.entries()) {
        const before = structuredClone(head);
        const stamp = { nonce: `n${index + 1}`, now: timeOf(index + 1) };
        const result = moveOf(kind, by, head.epoch - staleness, head, index + 1)(head, stamp);
        expect(head).toEqual(before);
        const mayClaim = head.owner === null || head.owner === by || kind === "takeover";
        const isOwner = head.owner === by && staleness === 0;
        const allowed = head.state !== "deleted" && (["claim", "takeover"].includes(kind) ? mayClaim : isOwner);
        expect("head" in result).toBe(allowed);
        if (!("head" in result)) continue;
        const next = result.head;

        const raisesEpoch = ["claim", "takeover", "destroy", "promote"].includes(kind);
        expect(next.epoch).toBe(head.epoch + (raisesEpoch ? 1 : 0));
        expect(next.promotion).toEqual(kind === "promote" ? promotion(index + 1) : head.promotion);
        expect(next.state === "live").toBe(next.owner !== null);
        expect(next.history).toEqual(nonces.slice(0, 8));
        expect(next.nonce).toBe(stamp.nonce);
        expect(next["of_a_later_release"]).toEqual({ kept: true });
        const publishes = ["publish", "releaseWith", "rewind", "promote"].includes(kind);
        if (publishes) expect(next.checkpoint).toEqual(checkpoint(index + 1));
        else if (kind === "destroy") expect(next.checkpoint).toBeNull();
        else expect(next.checkpoint).toEqual(head.checkpoint);
        expect(decodeRecord("id", encodeHead(next))).toEqual({ head: next });
        headSchema.parse(next);
        nonces.unshift(stamp.nonce);
        head = next;
      }
    }),
    { numRuns: 300 },
  );
});

it("refuses a head of another format, and a damaged one, by name", () => {
  const head = newHead("a", newSandbox(), { nonce: "n", now: timeOf(0) });
  const read = (text: string) => decodeRecord("some-id", Buffer.from(text));
  expect(() => read(JSON.stringify({ ...head, format: 2 }))).toThrow(/some-id\/metadata.json has format 2/);
  expect(() => read(JSON.stringify({ ...head, epoch: -1 }))).toThrow(/some-id\/metadata.json is damaged/);
  expect(() => read(JSON.stringify({ ...head, epoch: Number.MAX_SAFE_INTEGER }))).toThrow(/is damaged/);
  expect(() => read("{")).toThrow(/some-id\/metadata.json is damaged/);
  expect(read('{"status":"checkpointed","createdAt":"2026-01-01"}')).toHaveProperty("imported");
});
