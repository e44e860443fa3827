/** A question about one name, as programs ask it. */
export interface Question {
  readonly id: number;
  /** Whether the program wants the server to ask others. Copied to the answer. */
  readonly recursion: boolean;
  readonly name: string;
  readonly type: number;
  /** The bytes of the question, as they are repeated in the answer. */
  readonly bytes: Buffer;
}

export const A = 1;
export const AAAA = 28;
export const NO_ERROR = 0;
export const SERVER_FAILURE = 2;
export const NO_SUCH_NAME = 3;

const HEADER_BYTES = 12;
const INTERNET = 1;
const MAX_NAME_BYTES = 255;
/** Short, because the policy may change; long enough that programs do not ask for every connection. */
const TTL_SECONDS = 30;

/** Undefined: the message is not a query for one name of the internet. */
export function parseQuestion(message: Buffer): Question | undefined {
  if (message.length < HEADER_BYTES + 5 || message.readUInt16BE(4) !== 1) return undefined;
  const flags = message.readUInt16BE(2);
  // Neither an answer nor another kind of request.
  if ((flags & 0xf800) !== 0) return undefined;
  const labels: string[] = [];
  let at = HEADER_BYTES;
  for (;;) {
    const length = message[at];
    // A name in a question is never compressed.
    if (length === undefined || length > 63 || at - HEADER_BYTES > MAX_NAME_BYTES) return undefined;
    at += 1 + length;
    if (length === 0) break;
    const label = message.subarray(at - length, at).toString("latin1");
    // A dot inside a label would read as two labels.
    if (label.length < length || !/^[!-~]+$/.test(label) || label.includes(".")) return undefined;
    labels.push(label);
  }
  if (message.length < at + 4 || message.readUInt16BE(at + 2) !== INTERNET) return undefined;
  return {
    id: message.readUInt16BE(0),
    recursion: (flags & 0x100) !== 0,
    name: labels.join(".").toLowerCase(),
    type: message.readUInt16BE(at),
    bytes: message.subarray(HEADER_BYTES, at + 4),
  };
}

/** A query for the same name and type, under another id. */
export function questionMessage({ bytes }: Question, id: number): Buffer {
  return Buffer.concat([header(id, 0x100, 0), bytes]);
}

/** An answer with IPv4 addresses, or none. */
export function answerMessage({ id, recursion, bytes }: Question, code: number, addresses: readonly string[]): Buffer {
  const flags = 0x8080 | (recursion ? 0x100 : 0) | code;
  return Buffer.concat([header(id, flags, addresses.length), bytes, ...addresses.map(addressRecord)]);
}

function header(id: number, flags: number, answers: number): Buffer {
  const bytes = Buffer.alloc(HEADER_BYTES);
  bytes.writeUInt16BE(id, 0);
  bytes.writeUInt16BE(flags, 2);
  bytes.writeUInt16BE(1, 4);
  bytes.writeUInt16BE(answers, 6);
  return bytes;
}

function addressRecord(address: string): Buffer {
  const bytes = Buffer.alloc(16);
  // The name is the one of the question, which follows the header.
  bytes.writeUInt16BE(0xc000 | HEADER_BYTES, 0);
  bytes.writeUInt16BE(A, 2);
  bytes.writeUInt16BE(INTERNET, 4);
  bytes.writeUInt32BE(TTL_SECONDS, 6);
  bytes.writeUInt16BE(4, 10);
  Buffer.from(address.split(".").map(Number)).copy(bytes, 12);
  return bytes;
}
