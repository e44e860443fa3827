import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:net";

const START_LIMIT_MS = 30_000;

/** Ends the server when this process does, however that ends: its standard input closes then. */
const WATCHDOG = `"$@" & server=$!; cat > /dev/null; kill -9 "$server"`;

export interface ServerProcess {
  readonly endpoint: string;
  readonly stop: () => Promise<void>;
}

/** Starts a server on a free port of the loopback, and waits until it answers. */
export async function startServer(
  commandOf: (port: number) => readonly string[],
  env: Record<string, string> = {},
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
  const endpoint = `http://127.0.0.1:${port}`;
  try {
    await untilAnswering(endpoint);
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

async function untilAnswering(endpoint: string): Promise<void> {
  const deadline = AbortSignal.timeout(START_LIMIT_MS);
  for (;;) {
    try {
      await fetch(endpoint, { signal: deadline });
      return;
    } catch (error) {
      if (deadline.aborted) throw error;
      await new Promise((done) => setTimeout(done, 50));
    }
  }
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  server.close();
  await once(server, "close");
  return typeof address === "object" && address !== null ? address.port : 0;
}
