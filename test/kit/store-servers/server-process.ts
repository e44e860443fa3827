import { type ChildProcess, spawn } from "node:child_process";
import { randomInt } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:net";

const START_LIMIT_MS = 30_000;

/** Ends the server when this process ends in any way: its standard input closes then. */
const WATCHDOG = `"$@" & server=$!; cat > /dev/null; kill -9 "$server"`;

export interface ServerProcess {
  readonly endpoint: string;
  readonly stop: () => Promise<void>;
}

/** Starts a server on a free port of an address, and waits until it answers: at `healthPath`, if given, with success. */
export async function startServer(
  commandOf: (port: number) => readonly string[],
  env: Record<string, string> = {},
  healthPath?: string,
  address = "127.0.0.1",
): Promise<ServerProcess> {
  const port = await freePort();
  const child = spawn("sh", ["-c", WATCHDOG, "sh", ...commandOf(port)], {
    stdio: ["pipe", "pipe", "pipe"],
    env: { ...process.env, ...env },
  });
  let said = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.on("data", (data: Buffer) => {
      said = (said + data.toString()).slice(-4000);
    });
  }
  const endpoint = `http://${address}:${port}`;
  try {
    await untilAnswering(endpoint, healthPath);
  } catch (error) {
    await end(child);
    throw new Error(`The server did not start: ${said}`, { cause: error });
  }
  return { endpoint, stop: async () => await end(child) };
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, "close");
  child.stdin?.end();
  await ended;
}

async function untilAnswering(endpoint: string, healthPath: string | undefined): Promise<void> {
  const deadline = AbortSignal.timeout(START_LIMIT_MS);
  for (;;) {
    try {
      const answer = await fetch(endpoint + (healthPath ?? ""), { signal: deadline });
      if (healthPath === undefined || answer.ok) return;
    } catch (error) {
      if (deadline.aborted) throw error;
    }
    await new Promise((done) => setTimeout(done, 50));
  }
}

/** Below the ports that the kernel gives out itself: a proxy of another test could get such a port, and answer for the server. */
const PORTS = { from: 20_000, to: 32_000 };

async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(PORTS.from, PORTS.to);
    const server = createServer().listen(port, "127.0.0.1");
    const isFree = await Promise.race([
      once(server, "listening").then(() => true),
      once(server, "error").then(() => false),
    ]).catch(() => false);
    if (!isFree) continue;
    server.close();
    await once(server, "close");
    return port;
  }
}
