/** The host that the first bytes of a connection name, apart from the one that it was opened to. */
export type Greeting =
  | { readonly kind: "incomplete" }
  /** Neither TLS nor HTTP, or without a name. */
  | { readonly kind: "nameless" }
  /** It claims to be TLS or HTTP, but cannot be read. */
  | { readonly kind: "unreadable" }
  | { readonly kind: "named"; readonly by: "SNI" | "Host"; readonly name: string };

/** More than any real greeting; a longer one is unreadable. */
export const MAX_GREETING_BYTES = 64 * 1024;

const HANDSHAKE = 0x16;
const CLIENT_HELLO = 1;
const SERVER_NAME = 0;
const REQUEST_LINE = /^[A-Za-z_-]+ \S+ HTTP\/1\.[01](?:\r\n|$)/;
/** Ends of lines that are not CRLF, and lines that continue the one before. */
const UNCLEAR_LINES = /(?<!\r)\n|\r(?!\n|$)|\r\n[ \t]/;

/** Reads the SNI of a TLS ClientHello, or the Host of an HTTP request. */
export function readGreeting(bytes: Buffer): Greeting {
  if (bytes.length === 0) return { kind: "incomplete" };
  const greeting = bytes[0] === HANDSHAKE ? readTls(bytes) : readHttp(bytes);
  return greeting.kind === "incomplete" && bytes.length >= MAX_GREETING_BYTES ? { kind: "unreadable" } : greeting;
}

/**
 * Servers read requests more generously than the standard says. A request that could name one host to this reader and
 * another one to a server is unreadable.
 */
function readHttp(bytes: Buffer): Greeting {
  // Servers skip empty lines before a request.
  const text = bytes.toString("latin1").replace(/^[\r\n]+/, "");
  if (text === "") return { kind: "incomplete" };
  // A text that cannot become a request line is another protocol.
  if (!/^[A-Za-z_-]{1,32}(?:[ \t]|$)/.test(text)) return { kind: "nameless" };
  const lineEnd = text.search(/[\r\n]/);
  if (lineEnd < 0) return { kind: "incomplete" };
  const [, target] = /^\S+[ \t]+(\S+)[ \t]+HTTP\/1/i.exec(text.slice(0, lineEnd)) ?? [];
  if (target === undefined) return { kind: "nameless" };
  const end = text.indexOf("\r\n\r\n");
  const head = end < 0 ? text : text.slice(0, end);
  if (UNCLEAR_LINES.test(head)) return { kind: "unreadable" };
  if (end < 0) return { kind: "incomplete" };
  const hosts = [...head.matchAll(/\r\nhost[ \t]*:[ \t]*([^\r\n]*)/gi)].map(([, host = ""]) => host.trim());
  if (!REQUEST_LINE.test(head) || hosts.length > 1) return { kind: "unreadable" };
  const host = hosts[0] === undefined ? "" : withoutPort(hosts[0]);
  const [, authority] = /^[a-z][a-z0-9+.-]*:\/\/([^/?#]*)/i.exec(target) ?? [];
  // The host of a whole URL counts for servers, and not the header.
  const ofTarget = authority === undefined ? host : withoutPort(authority.replace(/^.*@/, ""));
  if (host !== "" && ofTarget.toLowerCase() !== host.toLowerCase()) return { kind: "unreadable" };
  return ofTarget === "" ? { kind: "nameless" } : { kind: "named", by: "Host", name: ofTarget };
}

export function withoutPort(authority: string): string {
  return authority.replace(/:[0-9]*$/, "").replace(/^\[(.*)\]$/, "$1");
}

/** A ClientHello may be split over several records. */
function readTls(bytes: Buffer): Greeting {
  const pieces: Buffer[] = [];
  let at = 0;
  for (;;) {
    const hello = Buffer.concat(pieces);
    if (hello.length >= 4) {
      if (hello[0] !== CLIENT_HELLO) return { kind: "unreadable" };
      const end = 4 + hello.readUIntBE(1, 3);
      if (end > MAX_GREETING_BYTES) return { kind: "unreadable" };
      if (hello.length >= end) return readHello(hello.subarray(4, end));
    }
    if (bytes.length < at + 5) return { kind: "incomplete" };
    const length = bytes.readUInt16BE(at + 3);
    if (bytes[at] !== HANDSHAKE || bytes[at + 1] !== 3 || length === 0) return { kind: "unreadable" };
    const piece = bytes.subarray(at + 5, at + 5 + length);
    if (piece.length < length) return { kind: "incomplete" };
    pieces.push(piece);
    at += 5 + length;
  }
}

function readHello(hello: Buffer): Greeting {
  try {
    const reader = new Reader(hello);
    reader.take(34); // version, random
    reader.block(1); // session id
    reader.block(2); // ciphers
    reader.block(1); // compression
    if (reader.done) return { kind: "nameless" };
    const extensions = new Reader(reader.block(2));
    let named: Greeting = { kind: "nameless" };
    while (!extensions.done) {
      const type = extensions.number(2);
      const content = extensions.block(2);
      if (type !== SERVER_NAME) continue;
      if (named.kind === "named") return { kind: "unreadable" };
      const names = new Reader(new Reader(content).block(2));
      if (names.number(1) !== 0) return { kind: "unreadable" };
      named = { kind: "named", by: "SNI", name: names.block(2).toString("latin1") };
      if (!names.done) return { kind: "unreadable" };
    }
    return named;
  } catch {
    return { kind: "unreadable" };
  }
}

class Reader {
  readonly #bytes: Buffer;
  #at = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  get done(): boolean {
    return this.#at === this.#bytes.length;
  }

  take(length: number): Buffer {
    if (this.#at + length > this.#bytes.length) throw new RangeError("The greeting is too short.");
    this.#at += length;
    return this.#bytes.subarray(this.#at - length, this.#at);
  }

  number(size: number): number {
    return this.take(size).readUIntBE(0, size);
  }

  /** With its length before it. */
  block(size: number): Buffer {
    return this.take(this.number(size));
  }
}
