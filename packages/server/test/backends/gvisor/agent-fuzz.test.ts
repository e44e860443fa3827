import { expect, test } from "vitest";
import { encodeFrame } from "../../../src/backends/agent/frame-decoder.ts";
import { Reply } from "../../../src/backends/agent/frame-types.ts";
import { PayloadWriter } from "../../../src/backends/agent/payload.ts";
import { HostileAgent } from "./support/hostile-agent.ts";

const u32 = (value: number): Buffer => new PayloadWriter().u32(value).finish();

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

test("a request that is too large for a frame is the caller's error, and affects nobody else", async () => {
  const agent = new HostileAgent();
  await expect(agent.client.exec({ key: "k", argv: ["x".repeat(2 << 20)] })).rejects.toMatchObject({
    code: "too_large",
  });
  expect(agent.failures).toEqual([]);
});

test("output beyond the window, or in endless pieces, ends the connection and fills no memory", async () => {
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
