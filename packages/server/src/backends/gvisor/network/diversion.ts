import { spawn, type ChildProcess } from "node:child_process";
import { createSocket, type Socket as DatagramSocket } from "node:dgram";
import { once } from "node:events";
import type { Socket } from "node:net";
import { SandboxerError } from "@sandboxer/protocol";
import { z } from "zod";
import type { NetworkGuard } from "../../backend.ts";
import { NAMESERVER } from "./addresses.ts";
import type { DiversionPorts } from "./firewall.ts";
import { serveNames } from "./serve-names.ts";

/** The guard of the sandbox with this address; undefined: there is none. Pending: it is being connected. */
export type GuardOf = (address: string) => Promise<NetworkGuard> | undefined;

const Started = z.object({ port: z.number().int() });
const Diverted = z.object({ from: z.string(), address: z.string(), port: z.number().int() });
const DNS_PORT = 53;

/**
 * Serves the traffic that the firewall redirected. A helper accepts connections and passes them on unchanged, with
 * their original destination: only the helper can ask the kernel for that.
 */
export class Diversion {
  readonly ports: DiversionPorts;
  /** Resolves when it takes no connections any more. */
  readonly ended: Promise<void>;
  readonly #helper: ChildProcess;
  readonly #names: DatagramSocket;

  private constructor(helper: ChildProcess, names: DatagramSocket, connections: number) {
    this.#helper = helper;
    this.#names = names;
    this.ports = { connections, names: names.address().port };
    helper.on("error", () => {});
    this.ended = new Promise((resolve) => {
      helper.once("exit", () => {
        // Without a helper for connections, names are not answered either.
        this.#names.close();
        resolve();
      });
    });
  }

  /** `name`: of the server's network. A program with it in its arguments is ended with the server's leftovers. */
  static async open(agentPath: string, name: string, guardOf: GuardOf): Promise<Diversion> {
    const names = createSocket("udp4").unref();
    names
      .on("error", () => {})
      .on("message", (message, { address, port }) => {
        void reply(guardOf(address), message, (answer) => names.send(answer, port, address, () => {}));
      });
    names.bind(0);
    await once(names, "listening");
    const helper = spawn(agentPath, ["divert", name], { env: {}, stdio: ["ignore", "ignore", "ignore", "ipc"] });
    try {
      const port = await started(helper);
      helper.on("message", (message, socket) => void divert(message, socket as Socket | undefined, guardOf));
      helper.unref();
      helper.channel?.unref();
      return new Diversion(helper, names, port);
    } catch (error) {
      names.close();
      helper.kill("SIGKILL");
      throw error;
    }
  }

  async close(): Promise<void> {
    this.#helper.kill("SIGKILL");
    await this.ended;
  }
}

async function started(helper: ChildProcess): Promise<number> {
  const failed = Promise.withResolvers<never>();
  const fail = (reason: Error | number | null): void =>
    failed.reject(new SandboxerError("backend_unavailable", `The agent cannot take connections: ${String(reason)}.`));
  helper.once("error", fail).once("exit", fail);
  const [message] = (await Promise.race([once(helper, "message"), failed.promise])) as [unknown];
  helper.off("exit", fail);
  return Started.parse(message).port;
}

async function divert(message: unknown, socket: Socket | undefined, guardOf: GuardOf): Promise<void> {
  if (socket === undefined) return;
  socket.on("error", () => {});
  const { data } = Diverted.safeParse(message);
  const guard = data === undefined ? undefined : await guardOf(data.from)?.catch(() => undefined);
  if (data === undefined || guard === undefined) return void socket.resetAndDestroy();
  if (data.address === NAMESERVER && data.port === DNS_PORT) return serveNames(socket, guard);
  guard.accept(socket, data);
}

async function reply(
  guard: Promise<NetworkGuard> | undefined,
  message: Buffer,
  send: (answer: Buffer) => void,
): Promise<void> {
  try {
    const answer = await (await guard)?.answer(message);
    if (answer !== undefined) send(answer);
  } catch {
    // The sandbox has ended, or the server closes.
  }
}
