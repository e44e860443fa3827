import { expect, test } from "vitest";
import { startTestServer } from "../../../../../test/kit/server/test-server.ts";
import { ProcessSocket } from "../http/processes/process-socket.ts";
import { endlessServer, MIB } from "./endless-server.ts";
import { call } from "./support.ts";

/** A sandbox whose owner answers endlessly, as the store says; its address at another server of the store. */
async function ownedByEndless(status: number, beginning: string) {
  const { url: advertiseUrl, sent } = await endlessServer(status, beginning);
  const owner = await startTestServer({ advertiseUrl, ring: false });
  const asked = await startTestServer({ store: owner.storeFolder ?? null });
  const { id } = (await call("POST", `${owner.httpUrl}/v1/sandboxes`, {})).body;
  return { url: `${asked.httpUrl}/v1/sandboxes/${id}`, sent };
}

test("the refusal of a call by another server is read up to a limit", async () => {
  const { url, sent } = await ownedByEndless(409, '{"error":{"code":"');
  const { status, body } = await call("POST", `${url}/checkpoint`, {});
  expect([status, body.error.code]).toEqual([503, "server_unreachable"]);
  await expect.poll(() => sent.open).toBe(0);
  expect(sent.bytes).toBeLessThan(32 * MIB);
});

test("the refusal of a WebSocket by another server is read up to a limit", async () => {
  const { url, sent } = await ownedByEndless(409, '{"error":{"code":"conflict","message":"');
  const socket = new ProcessSocket(`${url}/processes/some/attach?relay=allow`);
  await expect(socket.opened).rejects.toThrow("503");
  await expect.poll(() => sent.open).toBe(0);
  expect(sent.bytes).toBeLessThan(32 * MIB);
});
