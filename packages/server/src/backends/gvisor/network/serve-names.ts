import type { Socket } from "node:net";
import type { NetworkGuard } from "../../backend.ts";

const IDLE_MS = 10_000;

/** Answers questions about names on a connection, one after the other: each with its length before it. */
export async function serveNames(socket: Socket, { answer }: Pick<NetworkGuard, "answer">): Promise<void> {
  socket.setTimeout(IDLE_MS, () => socket.destroy());
  let bytes: Buffer = Buffer.alloc(0);
  try {
    for await (const chunk of socket as AsyncIterable<Buffer>) {
      bytes = Buffer.concat([bytes, chunk]);
      while (bytes.length >= 2 && bytes.length >= 2 + bytes.readUInt16BE(0)) {
        const end = 2 + bytes.readUInt16BE(0);
        const found = await answer(bytes.subarray(2, end));
        bytes = bytes.subarray(end);
        if (found === undefined) return;
        const length = Buffer.alloc(2);
        length.writeUInt16BE(found.length);
        socket.write(Buffer.concat([length, found]));
      }
    }
  } catch {
    // The program has closed the connection.
  } finally {
    socket.end(() => socket.destroy());
  }
}
