import { signal, type ReadonlySignal } from "@preact/signals";
import { Sandbox, type ProcessRecord, type PtySize } from "@sandboxer/client";
import { client } from "../../../session.ts";
import { PtySession } from "./pty-session.ts";
import { leftTerminals, nameTerminal, setLeft, terminalNames } from "./settings.ts";

/** As `sandboxer shell` starts it. */
const SHELL = "command -v bash >/dev/null 2>&1 && exec bash -i || exec sh -i";

/** The terminals of a sandbox are its processes with one, so that a new page finds them. */
export class TerminalList {
  readonly #sandboxId: string;
  readonly #open = signal<readonly PtySession[]>([]);
  readonly #left = signal<readonly string[]>([]);
  #sandbox: Promise<Sandbox> | undefined;

  constructor(sandboxId: string) {
    this.#sandboxId = sandboxId;
  }

  get open(): ReadonlySignal<readonly PtySession[]> {
    return this.#open;
  }

  /** Running terminals that are not shown. */
  get left(): ReadonlySignal<readonly string[]> {
    return this.#left;
  }

  /** Shows running ones; returns whether there are any. */
  async load(): Promise<boolean> {
    const sandbox = await this.#handle();
    const running = (await sandbox.processes()).filter(isTerminal).map(({ id }) => id);
    const left = leftTerminals.peek();
    this.#left.value = running.filter((id) => left.includes(id));
    const shown = new Set(this.#open.peek().map(({ id }) => id));
    const found = running.filter((id) => !left.includes(id) && !shown.has(id));
    this.#add(found.map((id) => new PtySession(sandbox, id)));
    return running.length > 0;
  }

  async start(size: PtySize | undefined): Promise<string> {
    const sandbox = await this.#handle();
    const env = { TERM: "xterm-256color", COLORTERM: "truecolor" };
    const { id } = await sandbox.pty({ command: SHELL, env, ...size });
    this.#add([new PtySession(sandbox, id)]);
    return id;
  }

  /** Hides it; it keeps running. */
  leave(session: PtySession): void {
    this.#remove(session);
    if (session.state.peek().is === "ended" || session.state.peek().is === "gone") return;
    setLeft(session.id, true);
    this.#left.value = [...this.#left.peek(), session.id];
  }

  async show(id: string): Promise<void> {
    setLeft(id, false);
    this.#left.value = this.#left.peek().filter((left) => left !== id);
    this.#add([new PtySession(await this.#handle(), id)]);
  }

  async end(session: PtySession): Promise<void> {
    await session.kill();
    this.#remove(session);
  }

  #add(sessions: readonly PtySession[]): void {
    this.#open.value = [...this.#open.peek(), ...sessions];
    for (const { id } of sessions) if (!(id in terminalNames.peek())) nameTerminal(id, this.#freeName());
  }

  #remove(session: PtySession): void {
    this.#open.value = this.#open.peek().filter((open) => open !== session);
  }

  #freeName(): string {
    const names = terminalNames.peek();
    const mine = [...this.#open.peek().map(({ id }) => id), ...this.#left.peek()];
    const used = new Set(mine.map((id) => names[id]));
    for (let number = 1; ; number += 1) {
      const name = `Terminal ${number}`;
      if (!used.has(name)) return name;
    }
  }

  /** Does not resume the sandbox automatically: that is the user's decision. */
  #handle(): Promise<Sandbox> {
    this.#sandbox ??= Sandbox.attach(this.#sandboxId, { client, autoResume: false }).catch((error: unknown) => {
      this.#sandbox = undefined;
      throw error;
    });
    return this.#sandbox;
  }
}

function isTerminal({ pty, state }: ProcessRecord): boolean {
  return pty && state === "running";
}
