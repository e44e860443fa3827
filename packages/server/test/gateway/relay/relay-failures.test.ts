import { PassThrough } from "node:stream";
import { expect, test } from "vitest";
import { E2bServices } from "../../../src/gateway/e2b/e2b-services.ts";
import { Owners } from "../../../src/gateway/relay/owners.ts";
import { SocketRelays } from "../../../src/gateway/relay/socket-relays.ts";

test("a WebSocket is served here if the store fails while its sandbox moves", async () => {
  const relays = new SocketRelays(
    {} as never,
    () => true,
    () => undefined,
  );
  const manager = {
    untilArrived: () => Promise.reject(new Error("the store is away")),
    ownerElsewhere: () => Promise.resolve(undefined),
  };
  const attach = { what: "attach", sandboxId: "s", credentials: {}, path: "/attach/s" };
  const passed = relays.pass(manager as never, {} as never, attach as never, { socket: new PassThrough() } as never);
  expect(await passed).toBe(false);
});

test("a draining server still knows which servers are dead, for calls in E2B's dialect that it relays", () => {
  const manager = { draining: true, isKnownDead: (id: string) => id === "dead" };
  const services = new E2bServices({ manager: () => manager, peerSecret: () => undefined } as never);
  expect(() => services.manager).toThrow("shutting down");
  expect([services.isKnownDead("dead"), services.isKnownDead("other")]).toEqual([true, false]);
});

test("the address of a dead server is looked up again, and keys do not go there", async () => {
  const dead = new Set<string>();
  const owners = ["first", "second"].map((instanceId) => ({ instanceId, url: `http://${instanceId}.example` }));
  const service = {
    epochOf: () => undefined,
    isKnownDead: (id: string) => dead.has(id),
    ownerElsewhere: () => Promise.resolve(owners.find(({ instanceId }) => !dead.has(instanceId))),
  };
  const known = new Owners();
  expect(await known.find(service as never, "s", false)).toMatchObject({ instanceId: "first" });
  dead.add("first");
  expect(await known.find(service as never, "s", false)).toMatchObject({ instanceId: "second" });
});
