import { expect, test } from "vitest";
import type { Frame } from "../../../src/backends/agent/frame-decoder.ts";
import { PayloadReader } from "../../../src/backends/agent/payload.ts";
import { ScriptedAgent } from "./scripted-agent.ts";

const PIECE = 256 * 1024;
const NO_SPACE = 28;

function asRead({ payload }: Frame): { readonly offset: number; readonly length: number } {
  const reader = new PayloadReader(payload);
  reader.u8();
  return { offset: reader.u64(), length: reader.u32() };
}

function asWrite({ payload }: Frame): { readonly offset: number; readonly flags: number; readonly data: Buffer } {
  const reader = new PayloadReader(payload);
  reader.u8();
  const flags = reader.u8();
  reader.u32();
  const offset = reader.u64();
  reader.string();
  return { offset, flags, data: reader.rest() };
}

function pattern(length: number): Buffer {
  return Buffer.from(Array.from({ length }, (_, index) => (index * 7 + (index >> 11)) & 255));
}

test("several pieces of a large file are requested at once, arrive in order, and do not depend on reused memory", async () => {
  const agent = new ScriptedAgent();
  const file = pattern(5 * PIECE + 100);
  const reading = Array.fromAsync(agent.client.files.read("/file"));
  await agent.untilAsked(1);
  expect(agent.asked).toHaveLength(1);
  const answer = (number: number): void => {
    const { offset, length } = asRead(agent.question(number));
    agent.answer(number, file.subarray(offset, offset + length));
  };
  for (let number = 0; number < 6; number++) {
    await agent.untilAsked(number === 0 ? 1 : number + 3);
    answer(number);
  }
  // After a short piece there may be more by now.
  await agent.untilAsked(9);
  expect(asRead(agent.question(8))).toMatchObject({ offset: file.length });
  for (const number of [6, 7, 8]) answer(number);
  expect(Buffer.concat(await reading).equals(file)).toBe(true);
});

test("a short piece is followed by a request for the bytes right after it", async () => {
  const agent = new ScriptedAgent();
  const reading = Array.fromAsync(agent.client.files.read("/file", { length: 2 * PIECE }));
  await agent.untilAsked(1);
  agent.answer(0, Buffer.alloc(10, 1));
  await agent.untilAsked(2);
  expect(asRead(agent.question(1))).toEqual({ offset: 10, length: PIECE });
  agent.answer(1, Buffer.alloc(0));
  expect(Buffer.concat(await reading)).toEqual(Buffer.alloc(10, 1));
});

test("a piece that is too long ends the connection, and nothing is written beyond the given memory", async () => {
  const agent = new ScriptedAgent();
  const memory = Buffer.alloc(100);
  const reading = agent.client.rootFiles.readInto("/file", 0, memory.subarray(0, 50));
  await agent.untilAsked(1);
  agent.answer(0, Buffer.alloc(51, 1));
  await expect(reading).rejects.toMatchObject({ code: "sandbox_failed" });
  expect(memory).toEqual(Buffer.alloc(100));
});

test("pieces of a file that is written are sent ahead, in order and unchanged, and the write ends with the last reply", async () => {
  const agent = new ScriptedAgent();
  const file = pattern(4 * PIECE + 5);
  // The producer reuses its memory.
  const memory = Buffer.alloc(PIECE);
  async function* content(): AsyncGenerator<Uint8Array> {
    for (let at = 0; at < file.length; at += PIECE) yield memory.subarray(0, file.copy(memory, 0, at));
    memory.fill(0);
  }
  let done = false;
  const writing = agent.client.files.write("/file", content()).then(() => (done = true));
  await agent.untilAsked(1);
  expect(asWrite(agent.question(0))).toMatchObject({ flags: 3, offset: 0, data: Buffer.alloc(0) });
  agent.answer(0, Buffer.alloc(0));
  await agent.untilAsked(4);
  for (let number = 1; number < 5; number++) {
    agent.answer(number, Buffer.alloc(0));
    await agent.untilAsked(Math.min(number + 3, 6));
  }
  expect(done).toBe(false);
  agent.answer(5, Buffer.alloc(0));
  await writing;
  const written = Buffer.alloc(file.length);
  for (const { offset, data } of agent.asked.slice(1).map(asWrite)) data.copy(written, offset);
  expect(written.equals(file)).toBe(true);
});

test("a piece that cannot be written ends the write with its own error, and no more is requested", async () => {
  const agent = new ScriptedAgent();
  let given = 0;
  async function* content(): AsyncGenerator<Uint8Array> {
    for (; given < 100; given++) yield Buffer.alloc(PIECE);
  }
  const writing = agent.client.files.write("/file", content());
  await agent.untilAsked(1);
  agent.answer(0, Buffer.alloc(0));
  await agent.untilAsked(4);
  agent.refuse(1, NO_SPACE);
  await expect(writing).rejects.toMatchObject({ code: "no_space" });
  expect(given).toBeLessThan(5);
});
