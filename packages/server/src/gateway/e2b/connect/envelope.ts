import { hasCode } from "../../../support/errno.ts";
import { ConnectError } from "./connect-error.ts";

/** A message in a stream is 5 bytes and its payload: flags, and the length as an unsigned big-endian number. */
const HEAD_BYTES = 5;
const COMPRESSED = 0x01;
const END = 0x02;

export function messageFrame(message: unknown): Buffer {
  return frame(0, message);
}

/** The last frame of a stream; without an error it succeeded. */
export function endFrame(error?: { readonly code: string; readonly message: string }): Buffer {
  return frame(END, error === undefined ? {} : { error });
}

function frame(flags: number, message: unknown): Buffer {
  const payload = Buffer.from(JSON.stringify(message));
  const head = Buffer.allocUnsafe(HEAD_BYTES);
  head.writeUInt8(flags);
  head.writeUInt32BE(payload.length, 1);
  return Buffer.concat([head, payload]);
}

/**
 * The messages of a stream from a client, however its frames are cut. Compressed and oversized frames are refused by
 * their head, before anything is kept of them. Ends with the stream, or with an end frame.
 */
export async function* readMessages(source: AsyncIterable<Uint8Array>, maxBytes: number): AsyncGenerator {
  let parts: Uint8Array[] = [];
  let held = 0;
  let wanted = HEAD_BYTES;
  let flags: number | undefined;
  for await (const chunk of received(source)) {
    parts.push(chunk);
    held += chunk.length;
    while (held >= wanted) {
      const all = Buffer.concat(parts);
      const piece = all.subarray(0, wanted);
      parts = [all.subarray(wanted)];
      held -= wanted;
      if (flags === undefined) {
        flags = piece.readUInt8();
        wanted = piece.readUInt32BE(1);
        checkHead(flags, wanted, maxBytes);
        continue;
      }
      if (flags === END) return;
      flags = undefined;
      wanted = HEAD_BYTES;
      yield parse(piece);
    }
  }
  if (held > 0 || flags !== undefined) throw new ConnectError("invalid_argument", "The stream ended inside a message.");
}

/** A client that disconnects in the middle of its request is no failure of the server. */
async function* received(source: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array, void, undefined> {
  try {
    yield* source;
  } catch (error) {
    throw isDisconnect(error) ? new ConnectError("canceled", "The client disconnected.", { cause: error }) : error;
  }
}

/** The only message of a request whose answer is a stream. */
export async function readOneMessage(source: AsyncIterable<Uint8Array>, maxBytes: number): Promise<unknown> {
  for await (const message of readMessages(source, maxBytes)) return message;
  throw new ConnectError("invalid_argument", "The stream has no message.");
}

function checkHead(flags: number, length: number, maxBytes: number): void {
  if ((flags & COMPRESSED) !== 0) {
    throw new ConnectError("unimplemented", "Compressed messages are not supported. Send them uncompressed.");
  }
  if (flags !== 0 && flags !== END) throw new ConnectError("invalid_argument", `The flags ${flags} are unknown.`);
  if (length <= maxBytes) return;
  throw new ConnectError(
    "resource_exhausted",
    `A message of ${length} bytes is too large; at most ${maxBytes} are allowed.`,
  );
}

function parse(payload: Buffer): unknown {
  try {
    return JSON.parse(payload.toString("utf8"));
  } catch {
    throw new ConnectError("invalid_argument", "A message is not JSON.");
  }
}

function isDisconnect(error: unknown): boolean {
  return hasCode(error, "ECONNRESET", "ERR_STREAM_PREMATURE_CLOSE");
}
