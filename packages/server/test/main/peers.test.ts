import { expect, test } from "vitest";
import { PeerSecret } from "../../src/gateway/access/peer-secret.ts";
import { readText } from "../../src/gateway/relay/read-text.ts";
import { endlessServer, MIB } from "../gateway/relay/endless-server.ts";
import { httpPeers, isServerAlive, ringOver } from "../../src/main/peers.ts";

const SECRET = new PeerSecret(Buffer.alloc(32));

test("the status of another server is read up to a limit", async () => {
  const { url, sent } = await endlessServer(200, '{"instance_id":"');
  expect(await httpPeers(SECRET).condition(url)).toBeUndefined();
  expect(sent.bytes).toBeLessThan(32 * MIB);
  await expect.poll(() => sent.open).toBe(0);
});

test("an error of another server is read up to a limit", async () => {
  const { url, sent } = await endlessServer(500, '{"error":{"code":"internal","message":"');
  const caller = { authorization: undefined, presentedKey: undefined };
  await expect(httpPeers(SECRET).resume(url, "00000000-0000-4000-8000-000000000000", caller)).rejects.toMatchObject({
    code: "internal",
    message: `The server ${url} answered with 500.`,
  });
  expect(sent.bytes).toBeLessThan(32 * MIB);
  await expect.poll(() => sent.open).toBe(0);
});

test("the responses to a ring and to a liveness check are not read", async () => {
  const { url, sent } = await endlessServer(200, "{");
  await ringOver(SECRET, { debug: () => {} })(url, "00000000-0000-4000-8000-000000000000");
  await expect.poll(() => isServerAlive(url)).toBe(true);
  await expect.poll(() => sent.open).toBe(0);
  expect(sent.bytes).toBeLessThan(32 * MIB);
});

test("an endless response is abandoned", async () => {
  const silent = { [Symbol.asyncIterator]: () => ({ next: () => new Promise<never>(() => {}) }) };
  await expect(readText(silent, { limitMs: 20 })).rejects.toMatchObject({ code: "timeout" });
});
