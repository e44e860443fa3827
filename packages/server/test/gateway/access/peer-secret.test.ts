import { randomBytes } from "node:crypto";
import { expect, test } from "vitest";
import { PeerSecret } from "../../../src/gateway/access/peer-secret.ts";
import { E2bTokens } from "../../../src/gateway/e2b/tokens.ts";
import { newKey } from "../../checkpoints/keys/key-lab.ts";

const STORED = randomBytes(32);
const [FIRST, SECOND] = [newKey(), newKey()];

test("a proof needs the store's secret, and an encryption key of the server if it has one", () => {
  const plain = new PeerSecret(STORED);
  const keyed = new PeerSecret(STORED, [FIRST]);
  expect(new PeerSecret(STORED).isProof(plain.proofOf("this"), "this")).toBe(true);
  expect(new PeerSecret(STORED, [FIRST]).isProof(keyed.proofOf("this"), "this")).toBe(true);
  expect(keyed.isProof(keyed.proofOf("this"), "that")).toBe(false);
  for (const other of [plain, new PeerSecret(randomBytes(32), [FIRST]), new PeerSecret(STORED, [SECOND])]) {
    expect(keyed.isProof(other.proofOf("this"), "this")).toBe(false);
  }
});

test("after a rotation the proofs and tokens of the old key are accepted, as long as the server has it", () => {
  const [before, after] = [new PeerSecret(STORED, [FIRST]), new PeerSecret(STORED, [SECOND, FIRST])];
  expect(after.isProof(before.proofOf("this"), "this")).toBe(true);
  expect(before.isProof(after.proofOf("this"), "this")).toBe(false);
  const [old, present] = [before, after].map((secret) => new E2bTokens(() => secret));
  const token = old?.of("envd", "a") ?? "";
  expect(present?.isToken("envd", "a", token)).toBe(true);
  expect(present?.isToken("traffic", "a", token)).toBe(false);
  expect(present?.of("envd", "a")).not.toBe(token);
});
