import { PassThrough } from "node:stream";
import { AgentClient } from "../../../src/backends/agent/agent-client.ts";
import { encodeFrame, FrameDecoder, type Frame } from "../../../src/backends/agent/frame-decoder.ts";
import { Reply } from "../../../src/backends/agent/frame-types.ts";
import { PayloadWriter } from "../../../src/backends/agent/payload.ts";

/** An agent that sends given answers at given times, all from the same memory. */
export class ScriptedAgent {
  readonly asked: Frame[] = [];
  readonly client: AgentClient;
  readonly #output = new PassThrough();
  readonly #memory = Buffer.alloc(1024 * 1024);
  #heard = Promise.withResolvers<void>();

  constructor() {
    const input = new PassThrough();
    const decoder = new FrameDecoder({ chunksLast: true });
    input.on("data", (chunk: Buffer) => {
      for (const frame of decoder.push(chunk)) this.asked.push({ ...frame, payload: Buffer.from(frame.payload) });
      this.#heard.resolve();
      this.#heard = Promise.withResolvers();
    });
    this.client = new AgentClient(input, this.#output, {
      users: { workingFolder: "/", rootInside: false },
      baseEnv: {},
      env: {},
      heartbeatMs: 0,
      onFailure: () => {},
      onEnd: () => {},
      chunksLast: false,
    });
  }

  async untilAsked(count: number): Promise<void> {
    while (this.asked.length < count) await this.#heard.promise;
  }

  /** The request with this number, from 0 on. */
  question(number: number): Frame {
    return this.asked[number] as Frame;
  }

  answer(number: number, content: Buffer): void {
    this.#send(encodeFrame(Reply.ok, this.question(number).request, content));
  }

  refuse(number: number, errno: number): void {
    const why = new PayloadWriter().u32(errno).string("refused");
    this.#send(encodeFrame(Reply.error, this.question(number).request, ...why.parts));
  }

  /** A change of a watched folder. */
  tellChange(watch: number, flags: number, name: string): void {
    this.#send(encodeFrame(Reply.change, 0, ...new PayloadWriter().u32(watch).u8(flags).string(name).parts));
  }

  #send(frame: Buffer): void {
    frame.copy(this.#memory);
    this.#output.emit("data", this.#memory.subarray(0, frame.length));
  }
}
