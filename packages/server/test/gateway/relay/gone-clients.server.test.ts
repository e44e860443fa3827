import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { once } from "node:events";
import { createServer, request, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { PassThrough } from "node:stream";
import { expect, onTestFinished, test, vi } from "vitest";
import type { Actor } from "../../../src/gateway/access/actor.ts";
import type { KeyWatch } from "../../../src/gateway/access/key-watch.ts";
import { SocketRelays, type Upgrade } from "../../../src/gateway/relay/socket-relays.ts";
import type { SandboxManager } from "../../../src/manager/sandbox-manager.ts";
import { call, pair, RELAY } from "./support.ts";

/** The end of the next answer that a server of this process gives, whether the client has read it or has gone. */
function nextAnswerClosed(): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const onStart = (message: unknown): void => {
    unsubscribe("http.server.request.start", onStart);
    (message as { response: ServerResponse }).response.once("close", resolve);
  };
  subscribe("http.server.request.start", onStart);
  return promise;
}

/** A server that answers every call, and counts its connections. */
async function otherServer(): Promise<{ readonly url: string; readonly connections: () => number }> {
  let connections = 0;
  const server = createServer((_, response) => response.end("{}"));
  server.on("connection", () => (connections += 1));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, connections: () => connections };
}

test("a call whose client disconnects while the owner is looked up is not relayed", async () => {
  const { owner, asked, url } = await pair();
  const other = await otherServer();
  const found = { instanceId: owner.instances.instanceId ?? "", url: other.url };
  const [looked, gone] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const look = vi.spyOn(asked.manager, "ownerElsewhere").mockImplementation(async () => found);
  look.mockImplementationOnce(async () => {
    looked.resolve();
    await gone.promise;
    return found;
  });
  const closed = nextAnswerClosed();
  const first = request(`${url}/stats`, { headers: RELAY });
  first.on("error", () => {});
  first.end();
  await looked.promise;
  first.destroy();
  await closed;
  gone.resolve();
  expect((await call("GET", `${url}/stats`, undefined, RELAY)).status).toBe(200);
  expect(other.connections()).toBe(1);
});

test("a WebSocket whose client disconnected is not relayed either", async () => {
  const other = await otherServer();
  const socket = new PassThrough();
  const manager = {
    untilArrived: async () => {},
    ownerElsewhere: async () => {
      socket.destroy();
      await once(socket, "close");
      return { instanceId: "other", url: other.url };
    },
  } as unknown as SandboxManager;
  const actor = { does: async (_: string, __: object, action: () => unknown) => action() } as unknown as Actor;
  const relays = new SocketRelays(
    { add: () => {} } as unknown as KeyWatch,
    () => true,
    () => undefined,
  );
  const attach = {
    what: "attach_process" as const,
    encryption: {},
    sandboxId: "s",
    credentials: { token: undefined, trusted: true },
    path: "/",
    authorization: undefined,
  };
  const upgrade = { request: { headers: {} }, socket, head: Buffer.alloc(0) } as unknown as Upgrade;
  expect(await relays.pass(manager, actor, attach, upgrade)).toBe(true);
  expect(other.connections()).toBe(0);
});
