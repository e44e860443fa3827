import { execFileSync, spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { createConnection } from "node:net";

const FORWARDING = "/proc/sys/net/ipv4/ip_forward";
const NAMESPACE = `outside-${process.pid}`;
const LINK = `out-${process.pid}`;
const ip = (...args: string[]): string => execFileSync("ip", args, { encoding: "utf8" });

export const HOST_SIDE = "203.0.113.1";
export const OUTSIDE = "203.0.113.2";
export const PORT = 8123;
/** How long to wait for an expected answer, on a busy machine. */
export const PATIENCE_MS = 20_000;
/** After this long without an answer there is none. */
const NO_ANSWER_MS = 2_000;
/** Addresses in the outside namespace that sandboxes may not reach; the host can. */
export const FORBIDDEN = [
  "192.168.213.2",
  "172.16.213.2",
  "10.214.0.2",
  "100.64.213.2",
  "169.254.213.2",
  "168.63.129.16",
  "192.0.0.170",
  "198.18.213.2",
  "198.19.213.2",
];

const SERVER = `
import socket, socketserver, threading
datagrams = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
datagrams.bind(("0.0.0.0", ${PORT}))
def hear():
    while True:
        data, who = datagrams.recvfrom(100)
        datagrams.sendto(b"outside heard " + data, who)
threading.Thread(target=hear, daemon=True).start()
class Answer(socketserver.BaseRequestHandler):
    def handle(self):
        self.request.sendall(("outside sees " + self.client_address[0]).encode())
        self.request.recv(1)
socketserver.ThreadingTCPServer.allow_reuse_address = True
socketserver.ThreadingTCPServer.daemon_threads = True
server = socketserver.ThreadingTCPServer(("0.0.0.0", ${PORT}), Answer)
print("ready", flush=True)
server.serve_forever()
`;

/** A namespace that acts as the outside: a server at addresses of TEST-NET-3 and of private networks, one link away. */
export class OutsideWorld {
  readonly #forwarding = readFileSync(FORWARDING, "utf8");
  #server: ChildProcess | undefined;

  async open(): Promise<void> {
    ip("netns", "add", NAMESPACE);
    ip("link", "add", LINK, "type", "veth", "peer", "name", "eth0", "netns", NAMESPACE);
    ip("address", "add", `${HOST_SIDE}/24`, "dev", LINK);
    ip("link", "set", LINK, "up");
    ip("-n", NAMESPACE, "address", "add", `${OUTSIDE}/24`, "dev", "eth0");
    ip("-n", NAMESPACE, "link", "set", "eth0", "up");
    for (const address of FORBIDDEN) {
      ip("-n", NAMESPACE, "address", "add", `${address}/32`, "dev", "eth0");
      ip("route", "add", `${address}/32`, "via", OUTSIDE, "dev", LINK);
    }
    // So that traffic from outside to a sandbox does not fail for lack of a route.
    ip("-n", NAMESPACE, "route", "add", "10.213.0.0/16", "via", HOST_SIDE);
    const server = spawn("ip", ["netns", "exec", NAMESPACE, "python3", "-c", SERVER], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    this.#server = server;
    await once(server.stdout, "data");
  }

  /** The output of a connection from the outside. */
  reach(address: string, port: number): string {
    const argv = ["netns", "exec", NAMESPACE, "python3", "-c", client(address, port)];
    return ip(...argv).trim();
  }

  async close(): Promise<void> {
    const ended = this.#server === undefined ? undefined : once(this.#server, "exit");
    this.#server?.kill("SIGKILL");
    await ended;
    ip("-n", NAMESPACE, "link", "delete", "eth0");
    ip("netns", "delete", NAMESPACE);
    writeFileSync(FORWARDING, this.#forwarding);
  }
}

/** A Python program that prints the output of a port, or the kind of failure. */
export function client(address: string, port: number, patienceMs?: number): string {
  return clients([address], port, patienceMs);
}

/** The same for several addresses at once, with a line for each: in gVisor the start of Python takes most of the time. */
export function clients(addresses: readonly string[], port: number, patienceMs = NO_ANSWER_MS): string {
  return `
import socket, threading
addresses = ${JSON.stringify(addresses)}
seen = {}
def reach(address):
    try:
        with socket.create_connection((address, ${port}), timeout=${patienceMs / 1000}) as s:
            seen[address] = s.recv(100).decode() or "closed"
    except OSError as error:
        seen[address] = "failed: " + type(error).__name__
threads = [threading.Thread(target=reach, args=(address,)) for address in addresses]
for thread in threads: thread.start()
for thread in threads: thread.join()
for address in addresses: print(seen[address])
`;
}

/** A Python program that prints the answer to a datagram, or the kind of failure. */
export function datagram(address: string): string {
  return `
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.settimeout(${NO_ANSWER_MS / 1000})
s.connect(("${address}", ${PORT}))
try:
    s.send(b"you")
    print(s.recv(100).decode())
except OSError as error:
    print("failed: " + type(error).__name__)
`;
}

/** A Python program that answers on a port, forever. */
export function listener(port: number, answer: string): string {
  return `
import socket
s = socket.create_server(("0.0.0.0", ${port}))
while True:
    c, _ = s.accept()
    c.sendall(b${JSON.stringify(answer)})
    c.close()
`;
}

/** From this process. */
export function reachFromHost(address: string, port: number, patienceMs = NO_ANSWER_MS): Promise<string> {
  return new Promise((resolve) => {
    const socket = createConnection({ host: address, port, timeout: patienceMs });
    socket.once("data", (data) => {
      resolve(data.toString("utf8"));
      socket.destroy();
    });
    socket.once("timeout", () => socket.destroy(new Error("timeout")));
    socket.once("error", (error) => resolve(`failed: ${error.message}`));
  });
}

/** Every namespace, link and table that servers have made for sandboxes. */
export function networkLeftovers(instanceId: string): { namespaces: string[]; links: string[]; tables: string[] } {
  const lines = (text: string): string[] => text.split("\n").filter((line) => line !== "");
  return {
    namespaces: lines(ip("netns", "list")).filter((line) => line.startsWith(`sandboxer-${instanceId}`)),
    links: lines(ip("-o", "link")).filter((line) => isLinkOf(instanceId, line)),
    tables: lines(execFileSync("nft", ["list", "tables"], { encoding: "utf8" })).filter((line) =>
      line.includes(instanceId),
    ),
  };
}

/** The link of a namespace that is deleted already counts for every server; those of other living servers do not. */
function isLinkOf(instanceId: string, line: string): boolean {
  if (!/^\d+: sandboxer-\d+@/.test(line)) return false;
  const [, namespace] = /link-netns (\S+)/.exec(line) ?? [];
  return namespace === undefined || namespace.startsWith(`sandboxer-${instanceId}`);
}
