import { once } from "node:events";
import type { Socket } from "node:net";
import type { HostileServer } from "./hostile-server.ts";
import type { HostileRequest } from "./requests.ts";

/** The response. No status: the server closed the connection, or did not answer in time. */
export interface HostileAnswer {
  readonly status: number | undefined;
  readonly text: string;
}

const PATIENCE_MS = 1_000;
const MAX_TEXT = 100_000;

/** Sends the bytes as they are, and reads until the answer is known; streams are left after their head. */
export async function sendRequest(server: HostileServer, request: HostileRequest): Promise<HostileAnswer> {
  const socket = server.tcp();
  const answered = readAnswer(socket);
  void sendBytes(socket, bytesOf(server, request), request);
  const answer = await answered;
  // Without the state that a closed connection leaves in the kernel, which runs out of ports else.
  socket.resetAndDestroy();
  return answer;
}

function bytesOf(server: HostileServer, { head, body, chunked }: HostileRequest): Buffer {
  const content = Buffer.from(server.fill(Buffer.from(body, "base64").toString("latin1")), "latin1");
  // Ids are longer than their names: the announced length changes with the content.
  const grown = content.length - Buffer.from(body, "base64").length;
  const told = server
    .fill(head)
    .replace(
      /^(Content-Length: )(\d{1,9})$/m,
      (_line, name: string, length: string) => `${name}${Number(length) + grown}`,
    );
  const framed = chunked
    ? Buffer.concat([Buffer.from(`${content.length.toString(16)}\r\n`), content, Buffer.from("\r\n0\r\n\r\n")])
    : content;
  return Buffer.concat([Buffer.from(`${told}\r\n\r\n`), framed]);
}

async function sendBytes(socket: Socket, bytes: Buffer, { pieces, ends }: HostileRequest): Promise<void> {
  const size = Math.ceil(bytes.length / pieces);
  for (let at = 0; at < bytes.length && !socket.destroyed; at += size) {
    if (!socket.write(bytes.subarray(at, at + size))) await once(socket, "drain").catch(() => {});
    if (pieces > 1) await new Promise((resolve) => setImmediate(resolve));
  }
  if (ends) socket.end();
}

function readAnswer(socket: Socket): Promise<HostileAnswer> {
  const { promise, resolve } = Promise.withResolvers<HostileAnswer>();
  let text = "";
  const done = (): void => resolve({ status: statusOf(text), text });
  const timer = setTimeout(done, PATIENCE_MS);
  socket.on("data", (data) => {
    text = (text + data.toString("latin1")).slice(0, MAX_TEXT);
    if (isComplete(text)) done();
  });
  socket.once("end", done).once("close", done);
  return promise.finally(() => clearTimeout(timer));
}

function statusOf(text: string): number | undefined {
  const status = /^HTTP\/1\.1 (\d{3})/.exec(withoutInterim(text))?.[1];
  return status === undefined ? undefined : Number(status);
}

function isComplete(text: string): boolean {
  const [head = "", ...rest] = withoutInterim(text).split("\r\n\r\n");
  if (rest.length === 0) return false;
  const length = /^content-length: (\d+)/im.exec(head)?.[1];
  return (
    !/^content-type: application\/json/im.test(head) ||
    length === undefined ||
    rest.join("\r\n\r\n").length >= Number(length)
  );
}

function withoutInterim(text: string): string {
  return text.replace(/^HTTP\/1\.1 1\d\d [^]*?\r\n\r\n/, "");
}
