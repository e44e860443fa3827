import { decodeOutputFrame, type ProcessEvent, processEventSchema } from "@sandboxer/protocol";
import { onTestFinished } from "vitest";
import { WebSocket } from "ws";

export interface ProcessSocketOptions {
  /** Acknowledges what arrives; else nothing is. */
  readonly acknowledge?: boolean;
  readonly deadlineMs?: number;
  readonly headers?: Readonly<Record<string, string>>;
}

/** A client of the process WebSocket that checks every frame: the bytes follow one another, or it says so. */
export class ProcessSocket {
  readonly socket: WebSocket;
  readonly events: ProcessEvent[] = [];
  /** Rejects when the server does not open it. */
  readonly opened: Promise<void>;
  readonly closed: Promise<number>;
  closeCode: number | undefined;
  /** The bytes that came, and the offset after the last of them. */
  readonly received: Buffer[] = [];
  offset: number | undefined;
  gapBytes = 0;
  readonly streams = { stdout: "", stderr: "" };
  readonly #deadlineMs: number;
  #wake: () => void = () => {};

  constructor(url: string, options: ProcessSocketOptions = {}) {
    const { acknowledge = true, deadlineMs = 30_000, headers = {} } = options;
    this.#deadlineMs = deadlineMs;
    this.socket = new WebSocket(url.replace(/^http/, "ws"), { headers });
    this.opened = new Promise((resolve, reject) => {
      this.socket.once("open", resolve);
      this.socket.once("error", reject);
    });
    this.opened.catch(() => {});
    this.closed = new Promise((resolve) => this.socket.once("close", resolve));
    this.socket.on("error", () => {});
    this.socket.on("message", (data: Buffer, isBinary: boolean) => {
      if (isBinary) this.#onOutput(data, acknowledge);
      else this.#onEvent(processEventSchema.parse(JSON.parse(data.toString("utf8"))));
      this.#wake();
    });
    void this.closed.then((code) => {
      this.closeCode = code;
      this.#wake();
    });
    onTestFinished(() => this.socket.terminate());
  }

  get text(): string {
    return Buffer.concat(this.received).toString("utf8");
  }

  get length(): number {
    return this.received.reduce((sum, { length }) => sum + length, 0);
  }

  send(message: object | Uint8Array | string): this {
    const frame = message instanceof Uint8Array || typeof message === "string" ? message : JSON.stringify(message);
    if (this.socket.readyState === WebSocket.OPEN) this.socket.send(frame);
    else this.socket.once("open", () => this.socket.send(frame));
    return this;
  }

  acknowledge(offset = this.offset ?? 0): this {
    return this.send({ action: "ack", offset });
  }

  async event<Kind extends ProcessEvent["event"]>(kind: Kind): Promise<ProcessEvent & { event: Kind }> {
    const find = (): ProcessEvent | undefined => this.events.findLast(({ event }) => event === kind);
    await this.when(() => find() !== undefined, kind);
    return find() as ProcessEvent & { event: Kind };
  }

  async when(condition: () => boolean, what: string): Promise<void> {
    const deadline = performance.now() + this.#deadlineMs;
    while (!condition()) {
      if (this.closeCode !== undefined || performance.now() > deadline) {
        const came = JSON.stringify(this.events.slice(-5));
        throw new Error(`${what} did not come; closed with ${this.closeCode}; ${this.length} bytes; ${came}`);
      }
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, 100);
        this.#wake = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
  }

  #onEvent(event: ProcessEvent): void {
    this.events.push(event);
    if (event.event === "attached") this.offset = event.offset;
  }

  #onOutput(data: Buffer, acknowledge: boolean): void {
    const frame = decodeOutputFrame(data);
    if (frame === undefined || this.offset === undefined) throw new Error("A frame that is none, or before attached.");
    if (frame.offset < this.offset) throw new Error(`Bytes came twice: ${frame.offset} after ${this.offset}.`);
    this.gapBytes += frame.offset - this.offset;
    this.offset = frame.offset + frame.data.length;
    this.received.push(Buffer.from(frame.data));
    this.streams[frame.stream] += Buffer.from(frame.data).toString("utf8");
    if (acknowledge) this.acknowledge();
  }
}
