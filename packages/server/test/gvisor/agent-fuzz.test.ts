import { PassThrough } from "node:stream";
import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import { SandboxerError } from "@sandboxer/protocol";
import { AgentClient } from "../../src/backends/agent/agent-client.ts";
import { encodeFrame } from "../../src/backends/agent/frame-decoder.ts";
import { Reply } from "../../src/backends/agent/frame-types.ts";
import { PayloadWriter } from "../../src/backends/agent/payload.ts";

/** An agent that is in the hands of whoever runs inside: it sends whatever it likes. */
class HostileAgent {
  readonly input = new PassThrough();
  readonly output = new PassThrough();
  readonly failures: SandboxerError[] = [];
  readonly client: AgentClient;

  constructor() {
    this.input.resume();
    this.client = new AgentClient(this.input, this.output, {
      user: { uid: 1000, gid: 1000 },
      env: {},
      workingFolder: "/",
      heartbeatMs: 0,
      onFailure: (error) => this.failures.push(error),
      onEnd: () => this.client.fail(new SandboxerError("sandbox_failed", "The agent is gone.")),
      chunksLast: true,
    });
  }

  /** Everything that waits for an answer, under the request numbers 1, 2, … */
  askEverything(): Promise<unknown>[] {
    const { client } = this;
    const drain = async (): Promise<void> => {
      const process = await client.exec({ key: "k", argv: ["x"] });
      for await (const chunk of process.output()) process.acknowledge(chunk.offset + chunk.data.length);
      await process.exited;
    };
    const receive = async (): Promise<void> => {
      for await (const _ of (await client.connect(80)).data);
    };
    return [
      client.ping(),
      drain(),
      client.processes(),
      client.processTable(),
      receive(),
      client.freezeProcesses(),
      client.files.stat("/x"),
      client.files.list("/x"),
      Array.fromAsync(client.files.read("/x")),
      client.files.write("/x", new Uint8Array(10)),
      client.restored(1, "host"),
      client.start({ timeoutMs: 60_000 }),
    ];
  }
}

const TYPES = [...Object.values(Reply), 0x00, 0x01, 0x82, 0xff];
const u32 = (value: number): Buffer => new PayloadWriter().u32(value).finish();
const frame = fc
  .tuple(fc.constantFrom(...TYPES), fc.nat(20), fc.uint8Array({ maxLength: 80 }), fc.constantFrom(0, 1, 2, 0xffff_ffff))
  .map(([type, request, payload, count]) => encodeFrame(type, request, Buffer.concat([u32(count), payload])));
/** Bytes of frames with some of them changed, cut anywhere. */
const stream = fc
  .tuple(
    fc.array(fc.oneof(frame, fc.uint8Array({ maxLength: 40 })), { maxLength: 30 }),
    fc.array(fc.tuple(fc.nat(), fc.nat(255)), { maxLength: 3 }),
  )
  .map(([parts, flips]) => {
    const bytes = Buffer.concat(parts);
    for (const [at, value] of flips) if (bytes.length > 0) bytes[at % bytes.length] = value;
    return bytes;
  });

const unhandled: unknown[] = [];
const onUnhandled = (reason: unknown): void => void unhandled.push(reason);
beforeAll(() => void process.on("unhandledRejection", onUnhandled));
afterAll(() => void process.off("unhandledRejection", onUnhandled));

test("whatever an agent sends, every call is answered or fails as sandbox_failed", async () => {
  await fc.assert(
    fc.asyncProperty(stream, fc.integer({ min: 1, max: 64 }), async (bytes, pieceBytes) => {
      const agent = new HostileAgent();
      const calls = agent.askEverything();
      for (let at = 0; at < bytes.length; at += pieceBytes) agent.output.write(bytes.subarray(at, at + pieceBytes));
      agent.output.end();
      for (const outcome of await Promise.allSettled(calls)) {
        if (outcome.status === "rejected") expect(outcome.reason).toBeInstanceOf(SandboxerError);
      }
      expect(agent.failures).toHaveLength(1);
      expect(agent.failures[0]?.code).toBe("sandbox_failed");
      await expect(agent.client.ping()).rejects.toMatchObject({ code: "sandbox_failed" });
    }),
    { numRuns: 400 },
  );
  await new Promise((resolve) => setImmediate(resolve));
  expect(unhandled).toEqual([]);
});

test.each<[string, Buffer]>([
  ["a frame that is too long", Buffer.from([0xff, 0xff, 0xff, 0x7f])],
  ["a frame that is too short", Buffer.from([1, 0, 0, 0, 0x80])],
  ["an unknown type", encodeFrame(0x99, 1, Buffer.alloc(0))],
  ["another ping's answer", encodeFrame(Reply.ok, 1, Buffer.from("wrong"))],
  ["an error without a message", encodeFrame(Reply.error, 1, u32(2))],
  ["an exit that is cut", encodeFrame(Reply.exit, 0, u32(1))],
  ["an offset beyond all numbers", encodeFrame(Reply.exit, 0, Buffer.concat([Buffer.alloc(12), Buffer.alloc(8, 255)]))],
])("%s ends the connection", async (_, bytes) => {
  const agent = new HostileAgent();
  const call = agent.client.ping();
  agent.output.write(bytes);
  await expect(call).rejects.toMatchObject({
    code: "sandbox_failed",
    message: expect.stringContaining("broke its protocol"),
  });
  expect(agent.input.destroyed && agent.output.destroyed).toBe(true);
});

test("a request that is too large for a frame is the caller's error, and harms nobody", async () => {
  const agent = new HostileAgent();
  await expect(agent.client.exec({ key: "k", argv: ["x".repeat(2 << 20)] })).rejects.toMatchObject({
    code: "too_large",
  });
  expect(agent.failures).toEqual([]);
});

test("output beyond the window, or in pieces without end, ends the connection and fills no memory", async () => {
  const agent = new HostileAgent();
  const starting = agent.client.exec({ key: "k", argv: ["x"] });
  agent.output.write(encodeFrame(Reply.ok, 1, new PayloadWriter().u32(7).u32(70).u8(0).finish()));
  const spawned = await starting;
  const reading = spawned.output()[Symbol.asyncIterator]();
  const first = reading.next();
  await new Promise((resolve) => setImmediate(resolve));
  agent.output.write(encodeFrame(Reply.ok, 2, Buffer.alloc(0)));
  const before = process.memoryUsage().heapUsed;
  for (let offset = 0; offset < 600_000 && agent.failures.length === 0; offset += 1) {
    const payload = new PayloadWriter()
      .u32(7)
      .u8(1 + (offset % 2))
      .u64(offset)
      .bytes(Buffer.from("x"))
      .finish();
    if (!agent.output.write(encodeFrame(Reply.output, 0, payload)))
      await new Promise((resolve) => setImmediate(resolve));
  }
  expect(await first).toMatchObject({ value: { offset: 0 } });
  await expect.poll(() => agent.failures.length).toBe(1);
  expect(process.memoryUsage().heapUsed - before).toBeLessThan(100 << 20);
  await expect(spawned.exited).rejects.toMatchObject({ code: "sandbox_failed" });
});
