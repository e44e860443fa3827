import fc from "fast-check";
import { hardJson, text } from "./values.ts";

/** One frame of a WebSocket as bytes that need not be one. */
export interface HostileFrame {
  /** In base64, with placeholders in what is text. */
  readonly payload: string;
  readonly opcode: number;
  readonly final: boolean;
  readonly reserved: number;
  readonly masked: boolean;
  /** The difference between the announced and the real length. */
  readonly lengthError: number;
  /** The encoding of the length; only the shortest is allowed by the protocol. */
  readonly lengthBytes: 0 | 2 | 8;
  /** How much of the frame is sent before the next begins. */
  readonly cutAt: number | undefined;
}

export interface Conversation {
  readonly path: string;
  /** For `/create`: begins with a valid configuration. */
  readonly opens: boolean;
  readonly frames: readonly HostileFrame[];
  /** How many TCP segments each frame is sent in. */
  readonly pieces: number;
  readonly end: "close" | "reset" | "half";
}

const EXECUTIONS = ["echo hi", "exit 3", "read x", "yes | head -n 2000", "sleep 0.01", "((", ""];

/** Messages that a client may send on one of the sockets, and similar ones. */
const message: fc.Arbitrary<Buffer> = fc.oneof(
  { weight: 3, arbitrary: fc.constantFrom(...EXECUTIONS).map((code) => json({ language: "bash", code })) },
  {
    weight: 3,
    arbitrary: fc
      .constantFrom("kill_process", "kill_sandbox", "checkpoint", "reconnect", "snapshot_filesystem", "kill", "detach")
      .chain((action) => fc.record({ name: text, offset: fc.anything() }).map((more) => json({ action, ...more }))),
  },
  { weight: 2, arbitrary: text.map((data) => json({ event: "stdin", data })) },
  {
    weight: 3,
    arbitrary: fc
      .record({
        action: fc.constantFrom("signal", "resize", "stdin", "close_stdin", "acknowledge", "ack", "eof"),
        signal: text,
        rows: fc.integer(),
        columns: fc.double(),
        offset: fc.integer(),
        bytes: fc.integer(),
      })
      .map(json),
  },
  { weight: 3, arbitrary: hardJson.map((value) => Buffer.from(value)) },
  { weight: 2, arbitrary: fc.uint8Array({ maxLength: 300 }).map((bytes) => Buffer.from(bytes)) },
  // Not UTF-8, cut in the middle of a character, more than a message may have.
  {
    weight: 2,
    arbitrary: fc.constantFrom("c328", "e282", "f0288cbc", "eda080", "ff", "00").map((hex) => Buffer.from(hex, "hex")),
  },
  { weight: 1, arbitrary: fc.constantFrom(70_000, 1_048_577).map((length) => Buffer.alloc(length, "x")) },
);

const frame: fc.Arbitrary<HostileFrame> = fc.record({
  payload: message.map((bytes) => bytes.toString("base64")),
  opcode: fc.oneof({ weight: 8, arbitrary: fc.constant(1) }, { weight: 2, arbitrary: fc.constant(2) }, fc.nat(15)),
  final: fc.nat(9).map((roll) => roll > 0),
  reserved: fc.oneof({ weight: 15, arbitrary: fc.constant(0) }, fc.nat(7)),
  masked: fc.nat(19).map((roll) => roll > 0),
  lengthError: fc.oneof(
    { weight: 20, arbitrary: fc.constant(0) },
    fc.integer({ min: -5, max: 1_000 }),
    fc.constant(2 ** 50),
  ),
  lengthBytes: fc.oneof({ weight: 20, arbitrary: fc.constant(0 as const) }, fc.constantFrom(2 as const, 8 as const)),
  cutAt: fc.oneof({ weight: 20, arbitrary: fc.constant(undefined) }, fc.nat(20)),
});

const PROCESS = "/v1/sandboxes/{{sandbox}}/processes/{{process}}/attach";
const path: fc.Arbitrary<string> = fc.oneof(
  { weight: 5, arbitrary: fc.constant("/create") },
  {
    weight: 6,
    arbitrary: fc.constantFrom("/attach/{{sandbox}}", "/attach/{{paused}}", `${PROCESS}?relay=allow`, PROCESS),
  },
  {
    weight: 4,
    arbitrary: fc
      .tuple(
        fc.constantFrom("/attach/{{sandbox}}", "/attach/{{paused}}", PROCESS),
        fc.constantFrom("sandbox_token", "checkpoint", "offset", "extensions", "relay"),
        text,
      )
      .map(([base, name, value]) => `${base}?${name}=${escaped(value)}`),
  },
  { weight: 1, arbitrary: text.map((id) => `/attach/${escaped(id)}`) },
);

/** Conversations with exactly so many frames. */
export function conversationOf(frames: number): fc.Arbitrary<Conversation> {
  return fc.record({
    path,
    opens: fc.nat(4).map((roll) => roll > 0),
    frames: fc.array(frame, { minLength: frames, maxLength: frames }),
    pieces: fc.constantFrom(1, 1, 2, 7),
    end: fc.constantFrom("close" as const, "reset" as const, "half" as const),
  });
}

function json(value: unknown): Buffer {
  const plain = (_key: string, part: unknown): unknown =>
    typeof part === "bigint" || typeof part === "symbol" || typeof part === "function" ? String(part) : part;
  return Buffer.from(JSON.stringify(value, plain));
}

function escaped(value: string): string {
  return encodeURIComponent(value.toWellFormed()).replaceAll("%7B", "{").replaceAll("%7D", "}");
}
