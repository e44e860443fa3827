import { type Socket, connect, createServer } from "node:net";
import { once } from "node:events";
import { afterEach, expect, test } from "vitest";
import { type TestAgent, startAgent } from "./support/agent.ts";
import { Type, str, u16, u32, u64 } from "./support/wire.ts";
import { meanwhile } from "../../test/kit/meanwhile.ts";

const sockets: Socket[] = [];
afterEach(() => {
  for (const socket of sockets.splice(0)) socket.destroy();
});

const listen = async (agent: TestAgent, port = 0) => (await agent.call(Type.listen, u16(port))).readUInt16LE();
const accepted = (agent: TestAgent) =>
  agent.events
    .filter((event) => event.type === Type.connectionAccepted)
    .map(({ payload }) => ({ connection: payload.readUInt32LE(), port: payload.readUInt16LE(4) }));
const received = (agent: TestAgent) =>
  Buffer.concat(
    agent.events.filter((event) => event.type === Type.connectionData).map((event) => event.payload.subarray(4)),
  ).toString();

function dial(port: number): Socket {
  const socket = connect(port, "127.0.0.1");
  socket.on("error", () => {});
  sockets.push(socket);
  return socket;
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  return typeof address === "object" && address !== null ? address.port : 0;
}

test("a program inside reaches the host through a port that the agent opens", async () => {
  const agent = await startAgent();
  const port = await listen(agent);
  const program = dial(port);
  program.write("hello");
  await agent.until("a connection", () => accepted(agent).length === 1);
  const connection = accepted(agent)[0]?.connection ?? 0;
  expect(accepted(agent)).toEqual([{ connection, port }]);
  expect(received(agent)).toBe("");
  await agent.call(Type.connectionWindow, u32(connection), u64(1000));
  await agent.until("its bytes", () => received(agent) === "hello");
  const answer = once(program, "data");
  await agent.call(Type.connectionWrite, u32(connection), Buffer.from("world"));
  expect(String((await answer)[0])).toBe("world");
  program.end();
  await agent.call(Type.connectionWrite, u32(connection));
  await agent.until("the end", () => agent.events.some((event) => event.type === Type.connectionClosed));
});

test("a port is opened once, and a port that a program uses is refused", async () => {
  const agent = await startAgent();
  const wanted = await freePort();
  expect(await listen(agent, wanted)).toBe(wanted);
  expect(await listen(agent, wanted)).toBe(wanted);
  const chosen = await listen(agent);
  expect(await listen(agent)).toBe(chosen);
  const other = createServer().listen(0, "127.0.0.1");
  await once(other, "listening");
  const taken = other.address();
  expect(await agent.failure(Type.listen, u16(typeof taken === "object" ? (taken?.port ?? 0) : 0))).toBe(98);
  other.close();
  expect(await agent.failure(Type.listen)).toBe(74);
  for (let count = 2; count < 8; count++) await listen(agent, await freePort());
  expect(await agent.failure(Type.listen, u16(await freePort()))).toBe(11);
});

test("RESTORED closes connections, and the port waits until the next host requests it", async () => {
  const agent = await startAgent();
  const port = await listen(agent);
  const before = dial(port);
  await agent.until("a connection", () => accepted(agent).length === 1);
  await agent.call(Type.quiesce);
  const meantime = dial(port);
  await once(meantime, "connect");
  const closed = once(before, "close");
  before.resume();
  await agent.call(Type.restored, u64(1), str(""), str(""));
  await closed;
  await meanwhile(60);
  expect(accepted(agent)).toHaveLength(1);
  expect(await listen(agent)).toBe(port);
  await agent.until("the connection that waited", () => accepted(agent).length === 2);
});

test("programs leave room for connections of the host", async () => {
  const agent = await startAgent();
  const port = await listen(agent);
  const all = Array.from({ length: 200 }, () => dial(port));
  await agent.until("192 connections", () => accepted(agent).length === 192);
  await agent.ping();
  expect(accepted(agent)).toHaveLength(192);
  await agent.call(Type.connect, u16(port));
  const first = accepted(agent)[0]?.connection ?? 0;
  await agent.call(Type.connectionClose, u32(first));
  await agent.until("one more", () => accepted(agent).length === 193);
  expect(all).toHaveLength(200);
});
