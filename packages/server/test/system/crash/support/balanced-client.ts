import type { ServerEvent } from "@sandboxer/protocol";
import { RawClient } from "../../../../../../test/kit/server/raw-client.ts";

const PAUSE_MS = 20;
const DEADLINE_MS = 60_000;

/** One run of code as its client has seen it: what came at which offset, over however many sockets. */
interface Seen {
  id: string | undefined;
  output: string;
  isDone: boolean;
  /** It is certain that it was not started. */
  isRefused: boolean;
}

/**
 * A client behind a load balancer: it knows several servers, goes to the next one when one sends it away, and asks there
 * for what it has not seen. Everything that a client should not live through is an error.
 */
export class BalancedClient {
  readonly #urls: () => readonly string[];
  readonly #finished = new Set<string>();
  #next: number;
  #socket: RawClient | undefined;
  #sandboxId = "";
  #taken = 0;
  /** How often it has had to go to another server. */
  moves = 0;

  constructor(urls: () => readonly string[], first: number) {
    this.#urls = urls;
    this.#next = first;
  }

  async create(configuration: object): Promise<void> {
    this.#socket = this.#connect("/create").send(configuration);
    await this.#socket.until("RUNNING");
    this.#sandboxId = (await this.#socket.event("sandbox_id")).sandbox_id;
    this.#taken = this.#socket.events.length;
  }

  /** Runs code once, and gives its whole output. */
  async run(code: string): Promise<string> {
    const seen: Seen = { id: undefined, output: "", isDone: false, isRefused: false };
    this.#socket?.run("bash", code);
    while (!seen.isDone) {
      const socket = this.#socket ?? (await this.#attach(seen));
      try {
        await socket.when(() => this.#take(socket, seen), "the end of an execution");
      } catch (error) {
        this.#take(socket, seen);
        if (socket.closeCode === undefined) throw error;
        if (socket.closeCode !== 1012) throw new Error(`Closed with ${socket.closeCode}.`, { cause: error });
        this.#socket = undefined;
      }
      if (!seen.isDone && seen.isRefused && socket.closeCode === undefined) {
        seen.isRefused = false;
        socket.run("bash", code);
      }
    }
    if (seen.id !== undefined) this.#finished.add(seen.id);
    return seen.output;
  }

  /** Takes what has come; true when there is nothing more to wait for. */
  #take(socket: RawClient, seen: Seen): boolean {
    for (; this.#taken < socket.events.length && !seen.isDone; this.#taken++) {
      takeEvent(socket.events[this.#taken] as ServerEvent & { execution_id?: string }, seen, this.#finished);
    }
    return seen.isDone || seen.isRefused;
  }

  async #attach(seen: Seen): Promise<RawClient> {
    this.moves += 1;
    for (;;) {
      const socket = this.#connect(`/attach/${this.#sandboxId}`);
      const isOpen = await socket.opened.then(
        () => true,
        () => false,
      );
      const said = isOpen ? await socket.outcome() : [];
      if (said.includes("RUNNING")) {
        this.#taken = socket.events.length;
        this.#socket = socket;
        const known = seen.id === undefined ? {} : { execution_id: seen.id, offset: Buffer.byteLength(seen.output) };
        return socket.send({ action: "reconnect", ...known });
      }
      // A server that is going says so, or is not there; anything else would lose this client its sandbox.
      const isGoing = said.length === 0 || said.at(-1) === 1012 || said.some((word) => /shutting down/.test(`${word}`));
      if (!isGoing) throw new Error(`Not attached: ${JSON.stringify(said)}`);
      await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
    }
  }

  #connect(path: string): RawClient {
    const urls = this.#urls();
    const url = urls[this.#next++ % urls.length];
    return new RawClient(`${url}${path}`, { deadlineMs: DEADLINE_MS });
  }
}

function takeEvent(event: ServerEvent & { execution_id?: string }, seen: Seen, finished: ReadonlySet<string>): void {
  const id = event.execution_id;
  const isOurs = id !== undefined && !finished.has(id);
  if (event.event === "stdout") {
    if (!isOurs) return;
    const start = (event.offset ?? 0) - Buffer.byteLength(event.data);
    if (start !== Buffer.byteLength(seen.output)) throw new Error(`Output at ${start} after ${seen.output.length}.`);
    seen.output += event.data;
  }
  if (event.event !== "status_update") return;
  if (event.status === "SANDBOX_EXECUTION_RUNNING" && isOurs) seen.id = id;
  // The end of nothing, or of what was over before: the code has not run.
  if (event.status === "SANDBOX_EXECUTION_DONE") {
    if (isOurs) seen.isDone = true;
    else seen.isRefused = true;
  }
}
