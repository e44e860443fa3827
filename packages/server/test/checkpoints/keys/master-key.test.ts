import { randomBytes } from "node:crypto";
import { inspect } from "node:util";
import { expect, it } from "vitest";
import { MasterKey } from "../../../src/checkpoints/keys/master-key.ts";

const BYTES = randomBytes(32);

it("is read as hex, base64 and base64url, and is the same key", () => {
  const texts = [
    BYTES.toString("hex"),
    BYTES.toString("base64"),
    BYTES.toString("base64url"),
    `${BYTES.toString("hex")}\n`,
  ];
  const fingerprints = texts.map((text) => MasterKey.parse(text)?.fingerprint);
  expect(new Set(fingerprints)).toEqual(new Set([new MasterKey(BYTES).fingerprint]));
});

it.each([
  "",
  "secret",
  BYTES.subarray(1).toString("base64"),
  BYTES.toString("hex").slice(1),
  `${BYTES.toString("base64")}A`,
])("is not read from %j", (text) => {
  expect(MasterKey.parse(text)).toBeUndefined();
});

it("is never shown by accident", () => {
  const key = new MasterKey(BYTES);
  const shown = [String(key), JSON.stringify({ key }), inspect({ key }, { depth: 9, showHidden: true })].join(" ");
  expect(shown).toContain(key.fingerprint);
  for (const encoding of ["hex", "base64"] as const) expect(shown).not.toContain(BYTES.toString(encoding).slice(0, 12));
});

it("unwraps its own data keys, each for its id only", () => {
  const key = new MasterKey(BYTES);
  const dataKey = randomBytes(32);
  const wrapped = key.wrap("one", dataKey);
  expect(key.unwrap("one", wrapped)).toEqual(dataKey);
  expect(key.unwrap("two", wrapped)).toBeUndefined();
  expect(new MasterKey(randomBytes(32)).unwrap("one", wrapped)).toBeUndefined();
  expect(key.unwrap("one", wrapped.subarray(1))).toBeUndefined();
  expect(key.wrap("one", dataKey)).not.toEqual(wrapped);
});
