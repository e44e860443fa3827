import type { Head } from "@sandboxer/protocol";
import { describe, expect, test } from "vitest";
import { type UnpublishedRecord, unpublishedSchema } from "../../../src/checkpoints/unpublished/unpublished-record.ts";
import { claim, newHead, publishCheckpoint, release, type MoveResult } from "../../../src/lease/head.ts";
import { whyNot } from "../../../src/manager/ownership/publish-unpublished.ts";

const checkpoint = (name: string) => ({
  name,
  sha256: "0".repeat(64),
  size_bytes: 1,
  created_at: "2026-01-01T00:00:00.000Z",
  kind: "fake-state",
  parent: null,
});

let nonces = 0;
const stamp = () => ({ nonce: `nonce-${(nonces += 1)}`, now: "2026-01-01T00:00:00.000Z" });
const moved = (result: MoveResult): Head => ("head" in result ? result.head : expect.fail(result.refusal));

const born = newHead(
  "dead",
  {
    idleTimeoutSeconds: 1,
    backend: "fake",
    spec: {},
    flags: {
      enable_checkpoint: true,
      enable_idle_timeout_auto_checkpoint: false,
      enable_sandbox_handoff: false,
      on_disconnect: "keep",
    },
    tokenHash: null,
  },
  stamp(),
);

const record = (changes: Partial<UnpublishedRecord> = {}): UnpublishedRecord =>
  unpublishedSchema.parse({
    format: 1,
    sandbox_id: "s",
    store: "/store",
    owner: { instance_id: "dead", epoch: 1 },
    replaces: null,
    checkpoint: checkpoint("checkpoint_2.img"),
    ...changes,
  });

const claimedBy = (head: Head, claimant: string): Head =>
  moved(claim(claimant, head.owner ?? undefined)(head, stamp()));
const released = (head: Head): Head =>
  moved(release({ instanceId: head.owner ?? "", epoch: head.epoch })(head, stamp()));

describe("a checkpoint that is on this machine may be published", () => {
  test("while the head names its dead server, or no owner since", () => {
    expect(whyNot(born, record())).toBeUndefined();
    expect(whyNot(released(born), record())).toBeUndefined();
  });

  test("while a server that was to publish it owns the sandbox, and has died or released it since", () => {
    const claimed = claimedBy(born, "publisher");
    expect(whyNot(claimed, record({ claiming: "publisher" }))).toBeUndefined();
    const noted = record({ owner: { instance_id: "publisher", epoch: 2 } });
    expect(whyNot(claimed, noted)).toBeUndefined();
    expect(whyNot(released(claimed), noted)).toBeUndefined();
  });
});

describe("it may not", () => {
  test("if another server has claimed the sandbox, whatever happened then", () => {
    const taken = claimedBy(born, "other");
    expect(whyNot(taken, record())).toContain("the server other");
    expect(whyNot(taken, record({ claiming: "publisher" }))).toContain("the server other");
    expect(whyNot(released(taken), record())).toContain("claimed by");
    expect(whyNot(released(taken), record({ claiming: "publisher" }))).toContain("claimed by");
    expect(whyNot(claimedBy(released(taken), "dead"), record())).toContain("claimed by");
  });

  test("when the head names another state", () => {
    const owner = { instanceId: "dead", epoch: 1 };
    const later = moved(publishCheckpoint(owner, checkpoint("checkpoint_9.img"))(born, stamp()));
    expect(whyNot(later, record())).toContain("claimed by");
    expect(whyNot(later, record({ replaces: "checkpoint_9.img" }))).toBeUndefined();
  });

  test("when the store does not know the sandbox", () => {
    expect(whyNot(undefined, record())).toBe("The store has no such sandbox.");
  });
});
