import { PassThrough } from "node:stream";
import { expect, test } from "vitest";
import { AgentClient } from "../../../src/backends/agent/agent-client.ts";
import { encodeFrame, FrameDecoder } from "../../../src/backends/agent/frame-decoder.ts";
import { Reply } from "../../../src/backends/agent/frame-types.ts";
import { PayloadReader } from "../../../src/backends/agent/payload.ts";

interface Asked {
  readonly request: number;
  readonly offset: number;
  readonly length: number;
}

/** An agent whose one file is what it is told to answer; all that it sends is in one and the same memory. */
class OneFileAgent {
  readonly asked: Asked[] = [];
  readonly client: AgentClient;
  readonly #output = new PassThrough();
  readonly #memory = Buffer.alloc(1024 * 1024);
  #heard = Promise.withResolvers<void>();

  constructor() {
    const input = new PassThrough();
    const decoder = new FrameDecoder({ chunksLast: true });
    input.on("data", (chunk: Buffer) => {
      for (const { request, payload } of decoder.push(chunk)) {
        const reader = new PayloadReader(payload);
        reader.u8();
        this.asked.push({ request, offset: reader.u64(), length: reader.u32() });
      }
      this.#heard.resolve();
      this.#heard = Promise.withResolvers();
    });
    this.client = new AgentClient(input, this.#output, {
      user: { uid: 1000, gid: 1000 },
      env: {},
      workingFolder: "/",
      heartbeatMs: 0,
      onFailure: () => {},
      onEnd: () => {},
      chunksLast: false,
    });
  }

  async untilAsked(count: number): Promise<void> {
    while (this.asked.length < count) await this.#heard.promise;
  }

  answer({ request }: Asked, content: Buffer): void {
    const frame = encodeFrame(Reply.ok, request, content);
    frame.copy(this.#memory);
    this.#output.emit("data", this.#memory.subarray(0, frame.length));
  }
}

const PIECE = 256 * 1024;

function contentOf({ offset, length }: Pick<Asked, "offset" | "length">, file: Buffer): Buffer {
  return file.subarray(offset, offset + length);
}

test("several pieces of a large file are asked for at once, and come in order as they are, whatever becomes of the memory", async () => {
  const agent = new OneFileAgent();
  const file = Buffer.from(Array.from({ length: 5 * PIECE + 100 }, (_, index) => (index * 7 + (index >> 11)) & 255));
  const reading = Array.fromAsync(agent.client.files.read("/file"));
  await agent.untilAsked(1);
  expect(agent.asked).toHaveLength(1);
  for (let answered = 0; answered < 6; answered++) {
    await agent.untilAsked(Math.min(answered === 0 ? 1 : answered + 3, 6));
    const asked = agent.asked[answered] as Asked;
    agent.answer(asked, contentOf(asked, file));
  }
  // Behind what was shorter than asked for there may be more by now.
  await agent.untilAsked(9);
  expect(agent.asked.at(-1)).toMatchObject({ offset: file.length });
  for (const asked of agent.asked.slice(6)) agent.answer(asked, contentOf(asked, file));
  expect(Buffer.concat(await reading).equals(file)).toBe(true);
});

test("a piece that is shorter than asked for is followed by what comes right behind it", async () => {
  const agent = new OneFileAgent();
  const length = 2 * PIECE;
  const reading = Array.fromAsync(agent.client.files.read("/file", { length }));
  await agent.untilAsked(1);
  agent.answer(agent.asked[0] as Asked, Buffer.alloc(10, 1));
  await agent.untilAsked(2);
  expect(agent.asked[1]).toMatchObject({ offset: 10, length: PIECE });
  agent.answer(agent.asked[1] as Asked, Buffer.alloc(0));
  expect(Buffer.concat(await reading)).toEqual(Buffer.alloc(10, 1));
});

test("more than was asked for ends the connection, and nothing is written beyond the memory that was given", async () => {
  const agent = new OneFileAgent();
  const memory = Buffer.alloc(100);
  const reading = agent.client.rootFiles.readInto("/file", 0, memory.subarray(0, 50));
  await agent.untilAsked(1);
  agent.answer(agent.asked[0] as Asked, Buffer.alloc(51, 1));
  await expect(reading).rejects.toMatchObject({ code: "sandbox_failed" });
  expect(memory).toEqual(Buffer.alloc(100));
});
