import { randomBytes } from "node:crypto";
import { expect, test } from "vitest";
import { encryptionSubprotocol, checkedEncryptionKey } from "../../src/wire/encryption-key.ts";
import { Transport } from "../../src/wire/transport.ts";

const KEY = randomBytes(32);

test("a key is sent with each call, and is not a field of the client", async () => {
  const sent: Headers[] = [];
  const fetch: typeof globalThis.fetch = async (_, init) => {
    sent.push(new Headers(init?.headers));
    return Response.json({ items: [], next_cursor: null });
  };
  const encryptionKey = KEY.toString("base64");
  const transport = new Transport({ fetch, encryptionKey });
  await transport.call("listSnapshots", {});
  expect(sent[0]?.get("sandboxer-encryption-key")).toBe(encryptionKey);
  expect(JSON.stringify(transport)).not.toContain(encryptionKey);
});

test("a text that is not a key is neither sent nor shown", () => {
  const password = "a password of something else";
  expect(() => new Transport({ encryptionKey: password })).toThrow("32 bytes");
  expect(() => checkedEncryptionKey(password)).not.toThrow(password);
});

test("a subprotocol is the same for each spelling of a key", () => {
  const wanted = `sandboxer.encryption-key.${KEY.toString("base64url")}`;
  const texts = (["hex", "base64", "base64url"] as const).map((encoding) => KEY.toString(encoding));
  expect(texts.map(encryptionSubprotocol)).toEqual([wanted, wanted, wanted]);
});
