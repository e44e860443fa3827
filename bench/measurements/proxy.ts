import { once } from "node:events";
import { createServer, type AddressInfo, type Server } from "node:net";
import { join } from "node:path";
import { type Lab, byEffort } from "../lab.ts";
import type { Contest, Findings } from "../result.ts";
import { callServer, createSandbox, execIn } from "../server/http-call.ts";
import { startServer, type ServerProcess } from "../server/server-process.ts";
import { NOTHING_AHEAD } from "../server/warm-server.ts";
import { summarize } from "../statistics.ts";

const MEGABYTE = 1_000_000;
const PIECE_BYTES = 64_000;
const INSIDE_PORT = 8000;
/** The goal for the way through the proxy, in ms. */
const ADDED_MS = 2;

/** Sends as many bytes as it is asked for, as `outside` does in the server's process. */
const SERVE_INSIDE = `
import socket, threading
def serve(peer):
    with peer:
        wanted = int(peer.makefile("rb").readline())
        piece = b"x" * ${PIECE_BYTES}
        while wanted > 0:
            peer.sendall(piece[:wanted])
            wanted -= len(piece)
listener = socket.create_server(("127.0.0.1", ${INSIDE_PORT}), backlog=64)
while True:
    threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
`;

/** Prints the milliseconds of each of some new connections that receive some bytes. */
const RECEIVE = `
import os, socket, sys, time
port, count, size, proxied = (int(word) for word in sys.argv[1:5])
proxy = os.environ.get("HTTP_PROXY", "").rsplit(":", 1)[-1]
for _ in range(count):
    begin = time.perf_counter()
    with socket.create_connection(("127.0.0.1", int(proxy) if proxied else port)) as peer:
        peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if proxied:
            peer.sendall(b"CONNECT 127.0.0.1:%d HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n" % port)
            head = b""
            while not head.endswith(b"\\r\\n\\r\\n"): head += peer.recv(1)
            assert b" 200 " in head, head
        peer.sendall(b"%d\\n" % size)
        left = size
        while left > 0:
            got = len(peer.recv(262144))
            assert got > 0
            left -= got
    print((time.perf_counter() - begin) * 1000)
`;

/** Connections of a program in a sandbox through the server's proxy, beside those to a program in the same sandbox. */
export async function measureProxy(lab: Lab): Promise<Partial<Findings>> {
  lab.progress("Connections through the network proxy");
  const outside = await openOutside();
  try {
    const places = { store: join(lab.scratch, "proxy-store"), dataHome: join(lab.scratch, "proxy-data") };
    const flags = [`--runsc=${lab.engine.path}`, NOTHING_AHEAD, "--network-allow=127.0.0.0/8"];
    const server = await startServer({ ...places, flags }, lab.cleanUp);
    const id = await createSandbox(server, { network: "open" });
    const serve = { command: ["python3", "-c", SERVE_INSIDE], detach: true };
    await callServer(server, "POST", `/v1/sandboxes/${id}/exec`, serve);
    const { port } = outside.address() as AddressInfo;
    return { contests: [await latency(lab, server, id, port), await throughput(lab, server, id, port)] };
  } finally {
    outside.close();
  }
}

async function latency(lab: Lab, server: ServerProcess, id: string, port: number): Promise<Contest> {
  const count = byEffort(lab, { full: 200, quick: 50, smoke: 2 });
  const [proxied, inside] = await both(server, id, { port, count, bytes: 1 });
  return {
    id: "proxy-latency",
    title: "A new connection to the outside and its first byte",
    unit: "ms",
    sides: [
      { name: "proxy", what: "CONNECT to a server on the host, one byte", summary: summarize(proxied) },
      {
        name: `inside + ${ADDED_MS} ms`,
        what: `the same to a program in the sandbox, plus ${ADDED_MS} ms`,
        summary: summarize(inside.map((ms) => ms + ADDED_MS)),
      },
    ],
    aim: { bound: "at most", ratio: 1 },
  };
}

async function throughput(lab: Lab, server: ServerProcess, id: string, port: number): Promise<Contest> {
  const bytes = byEffort(lab, { full: 256, quick: 64, smoke: 4 }) * MEGABYTE;
  const count = byEffort(lab, { full: 7, quick: 3, smoke: 1 });
  const [proxied, inside] = await both(server, id, { port, count, bytes });
  const rate = (ms: number): number => bytes / MEGABYTE / (ms / 1000);
  return {
    id: "proxy-throughput",
    title: `Download of ${bytes / MEGABYTE} MB`,
    unit: "MB/s",
    sides: [
      { name: "proxy", what: "from a server on the host, through the proxy", summary: summarize(proxied.map(rate)) },
      { name: "inside", what: "from a program in the same sandbox", summary: summarize(inside.map(rate)) },
    ],
    aim: { bound: "at least", ratio: 0.5 },
  };
}

async function both(
  server: ServerProcess,
  id: string,
  { port, count, bytes }: { readonly port: number; readonly count: number; readonly bytes: number },
): Promise<[number[], number[]]> {
  const receive = async (from: number, proxied: 0 | 1, times: number): Promise<number[]> => {
    const words = [from, times, bytes, proxied].map(String);
    return (await execIn(server, id, ["python3", "-c", RECEIVE, ...words])).trim().split("\n").map(Number);
  };
  for (const [from, proxied] of [[port, 1] as const, [INSIDE_PORT, 0] as const]) await receive(from, proxied, 1);
  return [await receive(port, 1, count), await receive(INSIDE_PORT, 0, count)];
}

/** Sends as many bytes as each client asks for. */
async function openOutside(): Promise<Server> {
  const piece = Buffer.alloc(PIECE_BYTES, "x");
  const server = createServer({ noDelay: true }, (socket) => {
    socket.on("error", () => {});
    socket.once("data", (line: Buffer) => {
      let left = Number(line.toString());
      const more = (): void => {
        while (left > 0) {
          const part = piece.subarray(0, Math.min(left, piece.length));
          left -= part.length;
          if (!socket.write(part)) return void socket.once("drain", more);
        }
        socket.end();
      };
      more();
    });
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  return server;
}
