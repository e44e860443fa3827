import type { Socket } from "node:net";
import type { ServerEvent } from "@sandboxer/protocol";
import { onTestFinished } from "vitest";
import { WebSocket } from "ws";
import { wordOf } from "./words.ts";

export interface RawClientOptions {
  readonly headers?: Readonly<Record<string, string>>;
  /** The authority of the server's certificate, in PEM. */
  readonly ca?: string;
  /** False: a client that reads everything and confirms nothing. */
  readonly autoPong?: boolean;
  /** Confirms the output that it reads, but only after this time. */
  readonly pongDelayMs?: number;
  /** How long to wait for an expected message; real engines take longer. */
  readonly deadlineMs?: number;
  /** False: a client that knows only the original protocol. */
  readonly extensions?: boolean;
}

const DEADLINE_MS = 60_000;

/**
 * A client that hides nothing: every event in order, the close code at the end. It reads as a list of words (see
 * `words.ts`), so that a test compares a whole conversation at once.
 */
export class RawClient {
  readonly socket: WebSocket;
  readonly events: ServerEvent[] = [];
  readonly closed: Promise<number>;
  readonly opened: Promise<void>;
  closeCode: number | undefined;
  readonly #deadlineMs: number;
  /** Fields that are added to its next message: the first one on `/create` asks for extensions. */
  #besides: object = {};
  #taken = 0;
  #wake: () => void = () => {};

  constructor(url: string, options: RawClientOptions = {}) {
    const { headers = {}, autoPong = true, pongDelayMs, deadlineMs = DEADLINE_MS, extensions = true, ca } = options;
    this.#deadlineMs = deadlineMs;
    const address = new URL(url);
    if (extensions && address.pathname === "/create") this.#besides = { extensions };
    else if (extensions) address.searchParams.set("extensions", "1");
    this.socket = new WebSocket(address, {
      headers: { ...headers },
      autoPong: autoPong && pongDelayMs === undefined,
      ca,
    });
    if (pongDelayMs !== undefined) {
      this.socket.on("ping", (data: Buffer) =>
        setTimeout(() => this.socket.pong(data, undefined, () => {}), pongDelayMs),
      );
    }
    this.opened = new Promise((resolve, reject) => {
      this.socket.once("open", resolve);
      this.socket.once("error", reject);
    });
    this.opened.catch(() => {});
    this.closed = new Promise((resolve) => this.socket.once("close", resolve));
    this.socket.on("error", () => {});
    this.socket.on("message", (data: Buffer) => {
      this.events.push(JSON.parse(data.toString("utf8")) as ServerEvent);
      this.#wake();
    });
    void this.closed.then((code) => {
      this.closeCode = code;
      this.#wake();
    });
    onTestFinished(() => this.socket.terminate());
  }

  /** Sends as soon as it can: an object as JSON, a text or bytes as they are. */
  send(message: object | string): this {
    const isRaw = typeof message === "string" || Buffer.isBuffer(message);
    const frame = isRaw ? message : JSON.stringify({ ...message, ...this.#besides });
    this.#besides = {};
    if (this.socket.readyState === WebSocket.OPEN) this.socket.send(frame);
    else
      this.opened.then(
        () => this.socket.send(frame),
        () => {},
      );
    return this;
  }

  run(language: string, code: string): this {
    return this.send({ language, code });
  }

  /** The received words that were not taken, up to the first that is `last`. Fails if that does not come. */
  async until(last: string): Promise<string[]> {
    const from = this.#taken;
    // Each event is looked at once: there may be very many.
    let looked = from;
    const isThere = (): boolean => {
      while (looked < this.events.length && !this.#isAt(looked, last)) looked += 1;
      return looked < this.events.length;
    };
    await this.#when(isThere, last);
    this.#taken = looked + 1;
    return words(this.events.slice(from, this.#taken));
  }

  /** Everything that was not taken, and the close code. */
  async untilClosed(): Promise<(string | number)[]> {
    await this.#when(() => this.closeCode !== undefined, "the close");
    return [...this.rest(), this.closeCode ?? 0];
  }

  /** The messages until the sandbox runs, or the server has closed. */
  async outcome(): Promise<(string | number)[]> {
    const runs = (): boolean =>
      this.events.some((_event, index) => index >= this.#taken && this.#isAt(index, "RUNNING"));
    await this.#when(() => runs() || this.closeCode !== undefined, "an outcome");
    return runs() ? this.until("RUNNING") : this.untilClosed();
  }

  /** Takes everything that has arrived. */
  rest(): string[] {
    const from = this.#taken;
    this.#taken = this.events.length;
    return words(this.events.slice(from));
  }

  /** Output of both kinds, joined, from all events. */
  get output(): string {
    return this.events
      .map((event) => (event.event === "stdout" || event.event === "stderr" ? event.data : ""))
      .join("");
  }

  async event<Kind extends ServerEvent["event"]>(kind: Kind): Promise<ServerEvent & { event: Kind }> {
    const find = (): ServerEvent | undefined => this.events.findLast((event) => event.event === kind);
    await this.#when(() => find() !== undefined, kind);
    return find() as ServerEvent & { event: Kind };
  }

  /** Resolves when a condition holds, which is looked at after each event. */
  async when(condition: () => boolean, what: string): Promise<void> {
    await this.#when(condition, what);
  }

  /** Disconnects without a close frame. */
  terminate(): void {
    this.socket.terminate();
  }

  /** Closes the connection properly, and waits until that is done. */
  async leave(): Promise<void> {
    this.socket.close(1000);
    await this.closed;
  }

  /** The TCP connection underneath: unread bytes stay in the kernel, then on the server. */
  get tcp(): Socket {
    const { _socket: socket } = this.socket as unknown as { _socket: Socket };
    return socket;
  }

  #isAt(index: number, word: string): boolean {
    const event = this.events[index];
    return event !== undefined && wordOf(event).startsWith(word);
  }

  async #when(condition: () => boolean, what: string): Promise<void> {
    const deadline = performance.now() + this.#deadlineMs;
    while (!condition()) {
      if (this.closeCode !== undefined || performance.now() > deadline) throw this.#missing(what);
      const woken = Promise.withResolvers<void>();
      const timer = setTimeout(woken.resolve, 100);
      this.#wake = woken.resolve;
      await woken.promise;
      clearTimeout(timer);
    }
  }

  #missing(what: string): Error {
    const came = JSON.stringify(words(this.events.slice(this.#taken))).slice(0, 2000);
    return new Error(`${what} did not come; the close code is ${this.closeCode}; what came: ${came}`);
  }
}

function words(events: readonly ServerEvent[]): string[] {
  const joined: string[] = [];
  for (const event of events) {
    const word = wordOf(event);
    const last = joined.at(-1);
    const prefix = event.event === "stdout" ? "out:" : event.event === "stderr" ? "err:" : undefined;
    if (prefix !== undefined && last?.startsWith(prefix) === true)
      joined[joined.length - 1] = last + word.slice(prefix.length);
    else joined.push(word);
  }
  return joined;
}
