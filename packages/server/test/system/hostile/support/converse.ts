import { randomBytes } from "node:crypto";
import type { Socket } from "node:net";
import type { Conversation, HostileFrame } from "./conversations.ts";
import type { HostileServer } from "./hostile-server.ts";

const PATIENCE_MS = 400;
const OPEN: HostileFrame = {
  payload: Buffer.from('{"enable_checkpoint":true}').toString("base64"),
  opcode: 1,
  final: true,
  reserved: 0,
  masked: true,
  lengthError: 0,
  lengthBytes: 0,
  cutAt: undefined,
};

/** Opens a WebSocket by hand, says everything as fast as it is taken, and leaves. Gives the status of the answer. */
export async function converse(server: HostileServer, conversation: Conversation): Promise<number | undefined> {
  const socket = server.tcp();
  const gone = new Promise<void>((resolve) => socket.once("end", resolve).once("close", resolve));
  const within = async (event: Promise<void>): Promise<void> => {
    const timeout = Promise.withResolvers<void>();
    const timer = setTimeout(timeout.resolve, PATIENCE_MS);
    await Promise.race([event, gone, timeout.promise]);
    clearTimeout(timer);
  };
  socket.write(upgradeOf(server.fill(conversation.path)));
  const head = Promise.withResolvers<void>();
  let status: number | undefined;
  socket.once("data", (data) => {
    status = Number(/^HTTP\/1\.1 (\d{3})/.exec(data.toString("latin1", 0, 20))?.[1]);
    socket.resume();
    head.resolve();
  });
  await within(head.promise);
  if (status === 101) {
    const frames =
      conversation.path === "/create" && conversation.opens ? [OPEN, ...conversation.frames] : conversation.frames;
    for (const frame of frames) await sendInPieces(socket, bytesOf(server, frame), conversation.pieces);
    if (conversation.end === "half") socket.end();
    if (conversation.end === "close") socket.write(bytesOf(server, { ...OPEN, opcode: 8, payload: "A+g=" }));
    if (conversation.end !== "reset") await within(gone);
  }
  socket.resetAndDestroy();
  return status;
}

function upgradeOf(path: string): string {
  const key = randomBytes(16).toString("base64");
  return (
    `GET ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n` +
    `Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: ${key}\r\n\r\n`
  );
}

async function sendInPieces(socket: Socket, bytes: Buffer, pieces: number): Promise<void> {
  const size = Math.max(1, Math.ceil(bytes.length / pieces));
  for (let at = 0; at < bytes.length && !socket.destroyed; at += size) {
    socket.write(bytes.subarray(at, at + size));
    if (pieces > 1) await new Promise((resolve) => setImmediate(resolve));
  }
}

function bytesOf(server: HostileServer, frame: HostileFrame): Buffer {
  const payload = Buffer.from(server.fill(Buffer.from(frame.payload, "base64").toString("latin1")), "latin1");
  const told = Math.max(0, payload.length + frame.lengthError);
  const lengthBytes = Math.max(frame.lengthBytes, told < 126 ? 0 : told < 65_536 ? 2 : 8);
  const header = Buffer.alloc(2 + lengthBytes);
  header[0] = (frame.final ? 0x80 : 0) | (frame.reserved << 4) | frame.opcode;
  header[1] = (frame.masked ? 0x80 : 0) | (lengthBytes === 0 ? told : lengthBytes === 2 ? 126 : 127);
  if (lengthBytes === 2) header.writeUInt16BE(told, 2);
  if (lengthBytes === 8) header.writeBigUInt64BE(BigInt(told), 2);
  const mask = Buffer.from([1, 2, 3, 4]);
  const masked = frame.masked ? payload.map((byte, index) => byte ^ (mask[index % 4] ?? 0)) : payload;
  return Buffer.concat([header, ...(frame.masked ? [mask] : []), masked]).subarray(0, frame.cutAt);
}
