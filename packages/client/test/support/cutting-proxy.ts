import { connect, createServer, type AddressInfo, type Socket } from "node:net";
import { onTestFinished } from "vitest";

export interface CuttingProxy {
  readonly url: string;
  readonly cuts: number;
  /** Lets everything through from now on. */
  heal(): void;
}

/** Passes TCP connections on to a server, and breaks each after a number of bytes from the server, in their middle. */
export async function cuttingProxy(target: string, bytesBeforeCut: () => number): Promise<CuttingProxy> {
  const { hostname, port } = new URL(target);
  const sockets = new Set<Socket>();
  let cuts = 0;
  let healed = false;
  const server = createServer((client) => {
    const upstream = connect(Number(port), hostname);
    let left = healed ? Number.POSITIVE_INFINITY : bytesBeforeCut();
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.on("error", () => {});
      socket.on("close", () => {
        sockets.delete(socket);
        client.destroy();
        upstream.destroy();
      });
    }
    client.pipe(upstream);
    upstream.on("data", (chunk: Buffer) => {
      const part = healed ? chunk : chunk.subarray(0, left);
      left -= chunk.length;
      client.write(part, () => {
        if (left > 0 || healed) return;
        cuts += 1;
        client.resetAndDestroy();
      });
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    get cuts() {
      return cuts;
    },
    heal: () => (healed = true),
  };
}
