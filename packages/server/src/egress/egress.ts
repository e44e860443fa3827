import type { Duplex } from "node:stream";
import { pipeline } from "node:stream/promises";
import { NetworkJudge, type IpAddress, type NetworkPolicy } from "@sandboxer/protocol";
import { MAX_GREETING_BYTES, readGreeting, type Greeting } from "./greeting.ts";
import { hostName, RefusedError, UnreachableError, type Dialed, type Outside, type Target } from "./outside.ts";

/** A connection that was not made, because of a rule. */
export interface Refusal {
  readonly name: string;
  readonly port: number;
  readonly rule: string;
  /** The address that the name stood for; absent: it was not resolved. */
  readonly address?: string | undefined;
}

export interface EgressOptions {
  readonly outside: Outside;
  readonly policy: NetworkPolicy;
  readonly onRefused: (refusal: Refusal) => void;
}

export interface EgressFigures {
  readonly openConnections: number;
  readonly sentBytes: number;
  readonly receivedBytes: number;
}

/** Bytes from and to the sandbox. */
export interface StreamBytes {
  readonly sent: number;
  readonly received: number;
}

interface Open {
  readonly to: { readonly name: string; readonly port: number; readonly address: IpAddress };
  readonly end: () => void;
}

const MAX_OPEN = 192;

/**
 * The connections of one sandbox to the outside, under its policy. Its front doors are a proxy that programs know, and
 * for a network of its own a transparent one and a nameserver.
 */
export class Egress {
  readonly outside: Outside;
  readonly #onRefused: EgressOptions["onRefused"];
  readonly #streams = new Map<Duplex, () => StreamBytes>();
  readonly #open = new Set<Open>();
  readonly #ending = new AbortController();
  #judge: NetworkJudge;
  #dialing = 0;
  #sentBytes = 0;
  #receivedBytes = 0;

  constructor({ outside, policy, onRefused }: EgressOptions) {
    this.outside = outside;
    this.#onRefused = onRefused;
    this.#judge = new NetworkJudge(policy);
  }

  /** The judge of the current policy. */
  get judge(): NetworkJudge {
    return this.#judge;
  }

  get figures(): EgressFigures {
    let [sentBytes, receivedBytes] = [this.#sentBytes, this.#receivedBytes];
    for (const bytes of this.#streams.values()) {
      sentBytes += bytes().sent;
      receivedBytes += bytes().received;
    }
    return { openConnections: this.#streams.size, sentBytes, receivedBytes };
  }

  /** Applies to open connections too: those that it forbids are ended. */
  setPolicy(policy: NetworkPolicy): void {
    this.#judge = new NetworkJudge(policy);
    for (const { to, end } of this.#open) if (!this.#judge.judge(to).allowed) end();
  }

  /** Counts a connection of a program inside until it closes. False: this has ended, and so has the connection. */
  admit(stream: Duplex, bytes: () => StreamBytes): boolean {
    stream.on("error", () => {});
    this.#streams.set(stream, bytes);
    stream.once("close", () => {
      this.#streams.delete(stream);
      this.#sentBytes += bytes().sent;
      this.#receivedBytes += bytes().received;
    });
    if (this.#ending.signal.aborted) stream.destroy();
    return !this.#ending.signal.aborted;
  }

  close(): void {
    this.#ending.abort();
    for (const stream of this.#streams.keys()) stream.destroy();
  }

  /** Connects, unless the sandbox has too many connections; gives up when `until` closes. */
  async dial(target: Target, until: NodeJS.EventEmitter): Promise<Dialed> {
    if (this.#open.size + this.#dialing >= MAX_OPEN) {
      throw new UnreachableError(`the sandbox has ${MAX_OPEN} connections already`);
    }
    const gone = new AbortController();
    const onClose = (): void => gone.abort();
    until.once("close", onClose);
    this.#dialing += 1;
    try {
      return await this.outside.dial(target, this.#judge, AbortSignal.any([gone.signal, this.#ending.signal]));
    } catch (error) {
      if (error instanceof RefusedError) {
        const name = hostName(target.host) ?? target.host;
        this.#onRefused({ name, port: target.port, rule: error.rule, address: error.address });
      }
      throw error;
    } finally {
      this.#dialing -= 1;
      until.off("close", onClose);
    }
  }

  /** Copies both ways until both sides have ended, if the greeting of the program names no forbidden host. */
  async relay(stream: Duplex, dialed: Dialed, port: number): Promise<void> {
    const { socket } = dialed;
    const forget = this.note(dialed, port, () => {
      stream.destroy();
      socket.destroy();
    });
    socket.on("error", () => {});
    const inward = pipeline(socket, stream);
    const outward = (async () => {
      const first = await this.#checkedGreeting(stream, dialed, port);
      if (first.length > 0) socket.write(first);
      await pipeline(stream, socket);
    })();
    await Promise.all([inward, outward]).catch(() => {});
    forget();
    socket.destroy();
    stream.destroy();
  }

  /** Policies that change apply to it from now on. */
  note({ name, address }: Dialed, port: number, end: () => void): () => void {
    const open = { to: { name, port, address }, end };
    this.#open.add(open);
    // The policy may have changed while it was connecting.
    if (!this.#judge.judge(open.to).allowed) end();
    return () => this.#open.delete(open);
  }

  refused(refusal: Refusal): RefusedError {
    this.#onRefused(refusal);
    return new RefusedError(refusal.rule);
  }

  /** The first bytes of a connection whose greeting names no forbidden host; none if the policy has no names. */
  async #checkedGreeting(stream: Duplex, { name, address }: Dialed, port: number): Promise<Buffer> {
    if (!this.#judge.looksAtNames) return Buffer.alloc(0);
    const { bytes, greeting } = await readFirst(stream);
    if (greeting.kind === "unreadable") throw this.refused({ name, port, rule: "unreadable greeting" });
    if (greeting.kind !== "named") return bytes;
    const greeted = hostName(greeting.name);
    if (greeted === name) return bytes;
    const verdict = this.#judge.judge({ name: greeted ?? "", port, address });
    if (verdict.allowed) return bytes;
    const rule = `${greeting.by} differs from ${name}: ${verdict.rule}`;
    throw this.refused({ name: greeted ?? name, port, rule });
  }
}

/** Reads until the greeting is known or the program has sent all; `incomplete`: it ended before that. */
export async function readFirst(stream: Duplex): Promise<{ readonly bytes: Buffer; readonly greeting: Greeting }> {
  let bytes: Buffer = Buffer.alloc(0);
  for (;;) {
    const greeting = readGreeting(bytes);
    if (greeting.kind !== "incomplete") return { bytes, greeting };
    const more = await nextChunk(stream);
    if (more === undefined) return { bytes, greeting };
    bytes = Buffer.concat([bytes, more]);
    if (bytes.length > 2 * MAX_GREETING_BYTES) return { bytes, greeting: { kind: "unreadable" } };
  }
}

/** The next bytes; undefined: there are none. */
function nextChunk(stream: Duplex): Promise<Buffer | undefined> {
  const chunk = stream.read() as Buffer | null;
  if (chunk !== null) return Promise.resolve(chunk);
  if (stream.readableEnded || stream.destroyed) return Promise.resolve(undefined);
  return new Promise((resolve) => {
    const onEvent = (): void => {
      for (const event of EVENTS) stream.off(event, onEvent);
      resolve(nextChunk(stream));
    };
    for (const event of EVENTS) stream.once(event, onEvent);
  });
}

const EVENTS = ["readable", "end", "close"] as const;
