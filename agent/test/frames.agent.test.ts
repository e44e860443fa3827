import { expect, test } from "vitest";
import { startAgent } from "./support/agent.ts";
import { Type, frame, list, str, u16, u32, u64, u8 } from "./support/wire.ts";

test("an unknown type is ENOSYS", async () => {
  const agent = await startAgent();
  for (const type of [0x00, 0x1f, 0x2f, 0x3f, 0x7f, 0x80, 0xc4, 0xff])
    expect(await agent.failure(type, Buffer.from("any"))).toBe(38);
});

test("a payload that is too short or too long is EBADMSG and changes nothing", async () => {
  const agent = await startAgent();
  const wellFormed: [number, Buffer[]][] = [
    [Type.hello, [u32(1), u32(50)]],
    [Type.spawn, [u8(0), u16(0), u16(0), u32(1000), u32(1000), str("k"), str("/"), list(["true"]), list(["A=b"])]],
    [Type.stdinClose, [u32(1)]],
    [Type.signal, [u32(0), u32(9), u8(2)]],
    [Type.resize, [u32(1), u16(1), u16(1)]],
    [Type.window, [u32(1), u8(0), u64(0), u64(0), u64(0)]],
    [Type.processes, []],
    [Type.forget, [u32(1)]],
    [Type.quiesce, []],
    [Type.resume, []],
    [Type.freeze, []],
    [Type.thaw, []],
    [Type.fileStat, [u8(0), str("/")]],
    [Type.fileList, [u8(0), u32(0), str("/")]],
    [Type.fileRead, [u8(0), u64(0), u32(1), str("/etc/passwd")]],
    [Type.fileMkdir, [u8(0), u8(0), u32(0o700), str("/tmp/agent-must-not-exist")]],
    [Type.fileRemove, [u8(0), u8(0), str("/tmp/agent-must-not-exist")]],
    [Type.fileRename, [u8(0), str("/tmp/agent-a"), str("/tmp/agent-b")]],
    [Type.fileSymlink, [u8(0), str("target"), str("/tmp/agent-must-not-exist")]],
    [Type.fileSet, [u8(0), u8(1), u32(0), u32(0), u32(0), u64(0), str("/tmp/agent-a")]],
    [Type.fileLink, [u8(0), str("/tmp/agent-a"), str("/tmp/agent-must-not-exist")]],
    [Type.fileAttributes, [u8(0), str("/tmp/agent-a")]],
    [Type.connect, [u16(1)]],
    [Type.connectionClose, [u32(1)]],
    [Type.connectionWindow, [u32(1), u64(1)]],
    [Type.processTable, []],
  ];
  for (const [type, parts] of wellFormed) {
    const whole = Buffer.concat(parts);
    expect(await agent.failure(type, whole, u8(0)), `type ${type}, too long`).toBe(74);
    for (let size = 0; size < whole.length; size++)
      expect(await agent.failure(type, whole.subarray(0, size)), `type ${type}, ${size} bytes`).toBe(74);
  }
  for (const type of [Type.stdin, Type.connectionWrite]) expect(await agent.failure(type, Buffer.alloc(3))).toBe(74);
  expect(await agent.failure(Type.restored, u64(1), str("x"))).toBe(74);
  expect(await agent.failure(Type.fileWrite, u8(0), u8(1))).toBe(74);
  expect(await agent.processes()).toEqual([]);
});

test("a NUL inside a str, and counts that promise too much, are EBADMSG", async () => {
  const agent = await startAgent();
  expect(await agent.failure(Type.fileStat, u8(0), str("/etc\0/x"))).toBe(74);
  expect(await agent.failure(Type.fileStat, u8(0), u32(0xffffffff), Buffer.from("/"))).toBe(74);
  const head = [u8(0), u16(0), u16(0), u32(1000), u32(1000), str("k"), str("/")];
  expect(await agent.failure(Type.spawn, ...head, u32(0xffffffff), u32(0))).toBe(74);
  expect(await agent.failure(Type.spawn, ...head, list(["true\0"]), list([]))).toBe(74);
});

test("a frame that is too long is skipped, in whatever pieces it arrives", async () => {
  const agent = await startAgent();
  expect(await agent.failure(Type.ping, Buffer.alloc(1_048_572))).toBe(90);
  expect((await agent.call(Type.ping, Buffer.alloc(1_048_571))).length).toBe(1_048_571);
  expect(await agent.failure(0x77, Buffer.alloc(30_000_000))).toBe(90);
  await agent.ping();
});

test("frames may arrive byte by byte", async () => {
  const agent = await startAgent();
  const bytes = frame(Type.ping, 0xfffffff0, Buffer.from("slow"));
  for (const byte of bytes) {
    agent.raw(Buffer.from([byte]));
    await new Promise((resolve) => setImmediate(resolve));
  }
  const reply = await agent.until("the reply", () => agent.events.find((event) => event.request === 0xfffffff0));
  expect(reply.payload.toString()).toBe("slow");
});

test.each([0, 1, 4])("a length of %i ends the agent", async (length) => {
  const agent = await startAgent();
  agent.raw(Buffer.concat([u32(length), Buffer.alloc(8)]));
  expect(await agent.ended()).toBe(2);
});
