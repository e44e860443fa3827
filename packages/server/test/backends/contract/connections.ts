import { expect, test } from "vitest";
import type { ContractContext } from "./context.ts";
import { errorCode, Follower, node, start } from "./programs.ts";

const ECHO = 'require("net").createServer((c) => c.pipe(c)).listen(7001, "127.0.0.1", () => console.log("listening"))';

export function connectionContract(context: ContractContext): void {
  test("a port inside answers while a program listens on it", async () => {
    const handle = await context.shared();
    expect(await errorCode(handle.connect(7001))).toBe("backend_unavailable");
    const server = await start(handle, node(ECHO));
    await new Follower(server).until("listening");

    const connection = await handle.connect(7001);
    const sent = Buffer.alloc(300_000, "0123456789");
    const received: Uint8Array[] = [];
    await Promise.all([connection.write(sent), receive(connection.data, sent.length, received)]);
    expect(Buffer.concat(received).equals(sent)).toBe(true);
    await connection.close();

    await server.signal(9, "group");
    await server.exited;
    expect(await errorCode(handle.connect(7001))).toBe("backend_unavailable");
  });
}

async function receive(data: AsyncIterable<Uint8Array>, bytes: number, into: Uint8Array[]): Promise<void> {
  let left = bytes;
  for await (const chunk of data) {
    into.push(chunk);
    left -= chunk.length;
    if (left <= 0) return;
  }
}
