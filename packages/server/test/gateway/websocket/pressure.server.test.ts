import { connect as connectTcp } from "node:net";
import { describe, expect, test } from "vitest";
import { WebSocket } from "ws";
import { eventually } from "../../../../../test/kit/eventually.ts";
import { startTestServer, type TestServer } from "../../../../../test/kit/server/test-server.ts";
import { meanwhile } from "../../../../../test/kit/meanwhile.ts";

const MIB = 1024 * 1024;

/** The memory that the server uses for clients that do not read. */
function unsentBytes(server: TestServer): number {
  return [...server.sockets].reduce((sum, socket) => sum + socket.writableLength, 0);
}

/** The output of executions that the server has sent. */
async function sentBytes(server: TestServer): Promise<number> {
  const metrics = await (await fetch(`${server.httpUrl}/metrics`)).text();
  return Number(/^sandboxer_output_bytes_total (\d+)/m.exec(metrics)?.[1] ?? 0);
}

async function highest(server: TestServer, forMs: number): Promise<number> {
  let most = 0;
  for (const end = performance.now() + forMs; performance.now() < end;) {
    most = Math.max(most, unsentBytes(server));
    await meanwhile(5);
  }
  return most;
}

describe("a client that stops reading", () => {
  test("costs little memory and delays nobody else, and gets everything in the end", async () => {
    const server = await startTestServer({ store: null });
    const { client } = await server.create();
    await client.run("bash", "yes 0123456789abcde | head -c 12000000; exit 5").until("EXECUTION_RUNNING");
    client.tcp.pause();
    expect(await highest(server, 500)).toBeLessThan(2 * MIB);
    const { client: other } = await server.create();
    expect(await other.run("bash", "echo quick").until("EXECUTION_DONE")).toContain("out:quick\n");
    expect(client.closeCode).toBeUndefined();
    client.tcp.resume();
    await client.until("EXECUTION_DONE");
    expect(client.events.at(-1)).toMatchObject({ exit_code: 5 });
    expect(client.output).toHaveLength(12_000_000);
    expect(client.output).toBe("0123456789abcde\n".repeat(750_000));
  });

  test("is still heard", async () => {
    const server = await startTestServer({ store: null });
    const { client } = await server.create();
    await client.run("bash", "yes").until("EXECUTION_RUNNING");
    client.tcp.pause();
    await eventually("all is sent that may be sent unconfirmed", async () => (await sentBytes(server)) >= MIB);
    client.send({ action: "kill_process" });
    await eventually("it is killed", () => server.operations.some(({ operation }) => operation === "execute"));
    client.tcp.resume();
    expect((await client.until("EXECUTION_DONE")).slice(-2)).toEqual(["EXECUTION_FORCE_KILLED", "EXECUTION_DONE"]);
  });

  test("and sends forty thousand requests has to wait", async () => {
    const server = await startTestServer({ store: null });
    const { client } = await server.create({}, { deadlineMs: 100_000 });
    client.tcp.pause();
    for (let sent = 0; sent < 40_000; sent += 1) client.send(`{"action":"${"?".repeat(100)}"}`);
    expect(await highest(server, 1000)).toBeLessThan(6 * MIB);
    const { client: other } = await server.create();
    expect(await other.run("bash", "echo quick").until("EXECUTION_DONE")).toContain("out:quick\n");
    client.tcp.resume();
    // Each event is looked at once.
    let [looked, answers] = [0, 0];
    const answered = (): boolean => {
      for (; looked < client.events.length; looked += 1) if (client.events[looked]?.event === "error") answers += 1;
      return answers === 40_000;
    };
    await client.when(answered, "an answer to each");
    expect(await client.run("bash", "echo done").until("out:done")).toContain("out:done\n");
  });

  test("and never reads again is released when it disappears", async () => {
    const server = await startTestServer({ store: null });
    const { client, id } = await server.create();
    await client.run("bash", "yes").until("EXECUTION_RUNNING");
    client.tcp.pause();
    await eventually("all is sent that may be sent unconfirmed", async () => (await sentBytes(server)) >= MIB);
    client.tcp.resetAndDestroy();
    await server.attachWhenFree(id);
  });
});

describe("a client that sends while it has to wait", () => {
  test("is not read any more", async () => {
    const server = await startTestServer({ store: null });
    const held = Promise.withResolvers<void>();
    server.backend.faults.set("acquire", { until: held.promise });
    const client = server.connect("/create").send({});
    await client.until("CREATING");
    const message = JSON.stringify({ action: "?".repeat(900_000) });
    const MESSAGES = 60;
    for (let sent = 0; sent < MESSAGES; sent += 1) client.send(message);
    await eventually("the rest stays with the client", async () => {
      const before = client.socket.bufferedAmount;
      await meanwhile(200);
      return before === client.socket.bufferedAmount;
    });
    // Sent data is in the kernel's buffers and in the server, which holds only a few messages of it.
    expect(client.socket.bufferedAmount).toBeGreaterThan(25 * MIB);
    held.resolve();
    await client.when(
      () => client.events.filter(({ event }) => event === "error").length === MESSAGES,
      "an answer to each",
    );
  });
});

describe("a thousand clients that connect and send nothing", () => {
  test("are disconnected in time, and the server answers others meanwhile", async () => {
    // Long enough that a busy machine opens all of them before the first is sent away.
    const server = await startTestServer({ store: null, firstMessageMs: 8000 });
    const { client } = await server.create();
    const before = process.memoryUsage().rss;
    const silent = Array.from({ length: 1000 }, () => server.connect("/create", { deadlineMs: 40_000 }));
    await Promise.all(silent.map((each) => each.opened));
    expect(server.sockets.size).toBe(1001);
    expect(await client.run("bash", "echo responsive").until("EXECUTION_DONE")).toContain("out:responsive\n");
    const healthy = await fetch(`${server.httpUrl}/healthz`);
    expect(healthy.status).toBe(200);
    // Both ends of all connections are in this process.
    expect(process.memoryUsage().rss - before).toBeLessThan(300 * MIB);
    const said = await Promise.all(silent.map((each) => each.untilClosed()));
    for (const words of said)
      expect(words).toEqual(["CREATING", "CREATION_ERROR", expect.stringContaining("No configuration"), 4000]);
    await eventually("only the first is left", () => server.sockets.size <= 2);
    expect(server.backend.runningCount).toBe(1);
  });

  test("that do not even finish their request take no place", async () => {
    const server = await startTestServer({ store: null, maxClients: 5 });
    const { port } = new URL(server.httpUrl);
    const half = Array.from({ length: 100 }, () => connectTcp(Number(port), "127.0.0.1").on("error", () => {}));
    for (const socket of half) socket.write("GET /create HTTP/1.1\r\nUpgrade: websocket\r\n");
    const { client } = await server.create();
    expect(await client.run("bash", "echo on").until("EXECUTION_DONE")).toContain("out:on\n");
    for (const socket of half) socket.destroy();
  });
});

describe("frames that break the rules of WebSocket", () => {
  test.each([
    ["text that is not UTF-8", Buffer.from([0x81, 0x82, 0, 0, 0, 0, 0xff, 0xff]), 1007],
    ["a reserved opcode", Buffer.from([0x83, 0x80, 0, 0, 0, 0]), 1002],
    ["a frame without its mask", Buffer.from([0x81, 0x02, 0x7b, 0x7d]), 1002],
    [
      "a length beyond all bounds",
      Buffer.from([0x81, 0xff, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0]),
      1009,
    ],
  ])("%s", async (_what, bytes, code) => {
    const server = await startTestServer({ store: null });
    const { client, id } = await server.create();
    client.tcp.write(bytes);
    expect(await client.closed).toBe(code);
    expect((await server.attach(id).outcome()).at(-1)).toBe("RUNNING");
  });

  test("garbage instead of frames", async () => {
    const server = await startTestServer({ store: null });
    const { client } = await server.create();
    client.tcp.write("GET / HTTP/1.1\r\n\r\n".repeat(100));
    await client.closed;
    expect(client.socket.readyState).toBe(WebSocket.CLOSED);
    await server.create();
  });
});

test("a client that has sent much more than was handled learns of the end at once", async () => {
  const server = await startTestServer();
  const { client } = await server.create({ enable_checkpoint: true });
  client.send({ action: "checkpoint" });
  for (let index = 0; index < 500; index++) client.send({ action: "kill_process" });
  // Far below the time after which the connection would be cut.
  expect(await Promise.race([client.closed, meanwhile(20_000)])).toBe(1000);
});
