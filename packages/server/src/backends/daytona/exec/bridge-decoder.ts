import type { ExtensionProcess } from "../../extension/extension.ts";

export type Exit = Awaited<ExtensionProcess["exited"]>;

export type BridgeEvent =
  | { readonly kind: "missing"; readonly what: "folder" | "program" }
  | { readonly kind: "started"; readonly pid: number; readonly folder: string }
  | { readonly kind: "output"; readonly stream: "stdout" | "stderr"; readonly data: Buffer }
  | { readonly kind: "taken" }
  | ({ readonly kind: "exited" } & Exit)
  | { readonly kind: "finished" };

const LAST_MARKER_BYTE = 2;
const MAX_LINE_BYTES = 1 << 20;
const SIGNAL_BASE = 128;
const MAX_SIGNAL = 64;
const STREAMS = { o: "stdout", e: "stderr" } as const;

/**
 * Parses a session's log into events. The daemon puts markers of the bytes 1 and 2 before each line, which ours never
 * contain. The content is not trusted: invalid lines are ignored.
 */
export class BridgeDecoder {
  #line: Buffer = Buffer.alloc(0);
  #token: Buffer | undefined;
  #exited = false;
  /** For each stream, a possible beginning of the token; undefined once the stream has ended. */
  readonly #held: Record<"stdout" | "stderr", Buffer | undefined> = {
    stdout: Buffer.alloc(0),
    stderr: Buffer.alloc(0),
  };

  *push(chunk: Buffer): Generator<BridgeEvent> {
    let from = 0;
    for (let at = chunk.indexOf(10); at !== -1; at = chunk.indexOf(10, from)) {
      const line = Buffer.concat([this.#line, chunk.subarray(from, at)]);
      this.#line = Buffer.alloc(0);
      from = at + 1;
      yield* this.#read(Buffer.from(line.filter((byte) => byte > LAST_MARKER_BYTE)).toString("latin1"));
    }
    this.#line = Buffer.concat([this.#line, chunk.subarray(from)]);
    if (this.#line.length > MAX_LINE_BYTES) this.#line = Buffer.alloc(0);
  }

  *#read(line: string): Generator<BridgeEvent> {
    const started = /^p (\d+) ([0-9a-f]+) (\S+)$/.exec(line);
    const ended = /^x (\d+)$/.exec(line);
    if (line === "n folder" || line === "n program") {
      yield { kind: "missing", what: line === "n folder" ? "folder" : "program" };
    } else if (started !== null && this.#token === undefined) {
      this.#token = Buffer.from(started[2] ?? "", "latin1");
      yield { kind: "started", pid: Number(started[1]), folder: started[3] ?? "" };
    } else if (line === "w") {
      yield { kind: "taken" };
    } else if (ended !== null && !this.#exited) {
      this.#exited = true;
      yield { kind: "exited", ...exitOf(Number(ended[1])) };
      yield* this.#finish();
    } else if (/^[oe][A-Za-z0-9+/]+=*$/.test(line)) {
      yield* this.#output(STREAMS[line[0] as "o" | "e"], Buffer.from(line.slice(1), "base64"));
    }
  }

  *#output(stream: "stdout" | "stderr", data: Buffer): Generator<BridgeEvent> {
    const held = this.#held[stream];
    const token = this.#token;
    if (held === undefined || token === undefined) return;
    const all = Buffer.concat([held, data]);
    const end = all.indexOf(token);
    const kept = end === -1 ? beginningOf(token, all) : 0;
    const ready = end === -1 ? all.subarray(0, all.length - kept) : all.subarray(0, end);
    this.#held[stream] = end === -1 ? all.subarray(all.length - kept) : undefined;
    if (ready.length > 0) yield { kind: "output", stream, data: ready };
    if (end !== -1) yield* this.#finish();
  }

  *#finish(): Generator<BridgeEvent> {
    const { stdout, stderr } = this.#held;
    if (this.#exited && stdout === undefined && stderr === undefined) yield { kind: "finished" };
  }
}

/** How many of the last bytes could be the first of the token. */
function beginningOf(token: Buffer, data: Buffer): number {
  for (let length = Math.min(token.length - 1, data.length); length > 0; length--) {
    if (data.subarray(data.length - length).equals(token.subarray(0, length))) return length;
  }
  return 0;
}

/** A shell has one number for both: 128 plus the signal. A program that exits with such a code looks as if killed. */
export function exitOf(code: number): Exit {
  const signal = code - SIGNAL_BASE;
  return signal > 0 && signal <= MAX_SIGNAL ? { code: undefined, signal } : { code, signal: undefined };
}
