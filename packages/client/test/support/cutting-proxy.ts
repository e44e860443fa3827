import { connect, createServer, type AddressInfo, type Socket } from "node:net";
import { onTestFinished } from "vitest";

export interface CuttingProxy {
  readonly url: string;
  readonly cuts: number;
  /** Blocks existing connections silently. */
  stall(): void;
  /** New connections go there; existing ones stay. */
  retarget(url: string): void;
}

/** Passes TCP connections on to a server, and breaks each after a number of received bytes. */
export async function cuttingProxy(
  target: string,
  bytesBeforeCut = () => Number.POSITIVE_INFINITY,
): Promise<CuttingProxy> {
  let upstreamUrl = target;
  const sockets = new Set<Socket>();
  let cuts = 0;
  let generation = 0;
  const server = createServer((client) => {
    const { hostname, port } = new URL(upstreamUrl);
    const upstream = connect(Number(port), hostname);
    let left = bytesBeforeCut();
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
    const life = generation;
    upstream.on("data", (chunk: Buffer) => {
      if (life !== generation) return;
      const part = chunk.subarray(0, left);
      left -= chunk.length;
      client.write(part, () => {
        if (left > 0) return;
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
    stall: () => (generation += 1),
    retarget: (url) => (upstreamUrl = url),
  };
}
