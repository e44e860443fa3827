import { once } from "node:events";
import { createServer, type AddressInfo } from "node:net";
import { connect } from "node:tls";
import fc from "fast-check";
import { expect, test } from "vitest";
import { MAX_GREETING_BYTES, readGreeting } from "../../src/egress/greeting.ts";

/** The first bytes that Node's own TLS client sends. */
async function clientHello(servername: string | undefined): Promise<Buffer> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const accepted = once(server, "connection");
  const client = connect({ host: "127.0.0.1", port, ...(servername === undefined ? {} : { servername }) });
  client.on("error", () => {});
  const [socket] = (await accepted) as [import("node:net").Socket];
  let bytes = Buffer.alloc(0);
  while (readGreeting(bytes).kind === "incomplete") bytes = Buffer.concat([bytes, (await once(socket, "data"))[0]]);
  client.destroy();
  socket.destroy();
  server.close();
  return bytes;
}

const named = (name: string) => ({ kind: "named", by: "SNI", name });

test("the SNI of a real ClientHello is read, in one piece or many", async () => {
  const hello = await clientHello("pypi.example.org");
  expect(readGreeting(hello)).toEqual(named("pypi.example.org"));
  for (let length = 0; length < hello.length; length++)
    expect(readGreeting(hello.subarray(0, length))).toEqual({ kind: "incomplete" });
  expect(readGreeting(await clientHello(undefined))).toEqual({ kind: "nameless" });
});

test("a ClientHello that is split over records is read completely", async () => {
  const hello = (await clientHello("split.example.org")).subarray(5);
  const pieces: Buffer[] = [];
  for (let at = 0; at < hello.length; at += 7) {
    const piece = hello.subarray(at, at + 7);
    pieces.push(Buffer.from([0x16, 3, 1, 0, piece.length]), piece);
  }
  expect(readGreeting(Buffer.concat(pieces))).toEqual(named("split.example.org"));
});

test.each([
  ["a record of another version", Buffer.from([0x16, 9, 9, 0, 1, 1])],
  ["an empty record", Buffer.from([0x16, 3, 1, 0, 0])],
  ["another handshake message", Buffer.from([0x16, 3, 1, 0, 4, 2, 0, 0, 0])],
  ["a hello that promises more than it could need", Buffer.from([0x16, 3, 1, 0, 4, 1, 255, 255, 255])],
  ["a hello that is too short", Buffer.from([0x16, 3, 1, 0, 6, 1, 0, 0, 2, 3, 3])],
  [
    "too much without an end",
    Buffer.concat([Buffer.from("GET / HTTP/1.1\r\n"), Buffer.alloc(MAX_GREETING_BYTES, "a")]),
  ],
  ["a URL with another host than the header", Buffer.from("GET http://b.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n")],
  ["a folded header", Buffer.from("GET / HTTP/1.1\r\nHost:\r\n b.example\r\n\r\n")],
  ["lines that end with LF", Buffer.from("GET / HTTP/1.1\nHost: b.example\n\n\r\n")],
  ["a header that ends with LF", Buffer.from("GET / HTTP/1.1\r\nX: 1\nHost: b.example\r\n\r\n")],
  ["a header that ends with CR", Buffer.from("GET / HTTP/1.1\r\nX: 1\rHost: b.example\r\n\r\n")],
  ["a request line with tabs", Buffer.from("GET\t/\tHTTP/1.1\r\nHost: b.example\r\n\r\n")],
  ["two hosts", Buffer.from("GET / HTTP/1.1\r\nHost: a.example\r\nHost: b.example\r\n\r\n")],
])("%s is unreadable", (_, bytes) => {
  expect(readGreeting(bytes)).toEqual({ kind: "unreadable" });
});

test.each([
  ["GET / HTTP/1.1\r\nhOsT:  a.example:8080 \r\nX: 1\r\n\r\nbody", { kind: "named", by: "Host", name: "a.example" }],
  ["GET / HTTP/1.1\r\nHost: [::1]:80\r\n\r\n", { kind: "named", by: "Host", name: "::1" }],
  ["GET / HTTP/1.0\r\n\r\n", { kind: "nameless" }],
  ["\r\n\nGET / HTTP/1.1\r\nHost: a.example\r\n\r\n", { kind: "named", by: "Host", name: "a.example" }],
  ["\r\n", { kind: "incomplete" }],
  ["get / HTTP/1.1\r\nHost: a.example\r\n\r\n", { kind: "named", by: "Host", name: "a.example" }],
  [`GET /${"a".repeat(9000)} HTTP/1.1\r\nHost: a.example\r\n\r\n`, { kind: "named", by: "Host", name: "a.example" }],
  ["GET http://u@b.example:80/ HTTP/1.1\r\nHost: B.example\r\n\r\n", { kind: "named", by: "Host", name: "b.example" }],
  ["GET http://b.example/ HTTP/1.0\r\n\r\n", { kind: "named", by: "Host", name: "b.example" }],
  ["PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", { kind: "nameless" }],
  ["GET / HTTP/1.1\r", { kind: "incomplete" }],
  ["GET / HTTP/1.1\r\nHost: a.exa", { kind: "incomplete" }],
  ["GE", { kind: "incomplete" }],
  ["SSH-2.0-OpenSSH\r\n", { kind: "nameless" }],
  ["EHLO me\r\n", { kind: "nameless" }],
  ["", { kind: "incomplete" }],
])("%j is read", (text, greeting) => {
  expect(readGreeting(Buffer.from(text))).toEqual(greeting);
});

test("no bytes make the reader throw", () => {
  const start = fc.constantFrom(Buffer.alloc(0), Buffer.from([0x16, 3, 1, 0, 40, 1, 0, 0, 36]), Buffer.from("GET "));
  fc.assert(
    fc.property(
      start,
      fc.uint8Array({ maxLength: 80 }),
      (head, tail) => void readGreeting(Buffer.concat([head, tail])),
    ),
  );
});
