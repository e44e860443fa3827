import type { Socket } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import type { ChosenAddress } from "../backends/backend.ts";
import { parseAddress } from "@sandboxer/protocol";
import { readFirst, type Egress } from "./egress.ts";
import type { GivenAddresses } from "./given-addresses.ts";
import { hostName, type Dialed } from "./outside.ts";

const MAX_STREAMS = 512;
/** How long a program may take to name the host, if its address does not say which one it is. */
const NAME_MS = 3_000;

/**
 * For programs in a network of their own, which know nothing of a proxy. Their connections end here, and are made again
 * to the same address if the policy allows the address, or a name that the sandbox got the address for. An address that
 * the sandbox did not get here, such as one that a program remembers from before a restore, is allowed by the name in
 * the greeting of TLS or HTTP; the connection then goes to the current address of that name.
 */
export class TransparentProxy {
  readonly #egress: Egress;
  readonly #given: GivenAddresses;
  readonly #nameMs: number;

  constructor(egress: Egress, given: GivenAddresses, nameMs = NAME_MS) {
    this.#egress = egress;
    this.#given = given;
    this.#nameMs = nameMs;
  }

  accept(socket: Socket, to: ChosenAddress): void {
    socket.allowHalfOpen = true;
    const isFull = this.#egress.figures.openConnections >= MAX_STREAMS;
    const bytes = (): { sent: number; received: number } => ({ sent: socket.bytesRead, received: socket.bytesWritten });
    if (!this.#egress.admit(socket, bytes)) return;
    if (isFull) return void socket.resetAndDestroy();
    void this.#serve(socket, to).catch(() => void socket.resetAndDestroy());
  }

  async #serve(socket: Socket, to: ChosenAddress): Promise<void> {
    const dialed = await this.#dial(socket, to);
    await this.#egress.relay(socket, dialed, to.port);
  }

  async #dial(socket: Socket, { address: text, port }: ChosenAddress): Promise<Dialed> {
    const { judge } = this.#egress;
    const address = parseAddress(text);
    if (address === undefined) throw new TypeError(`${text} is not an address`);
    const names = [...this.#given.namesOf(text), text];
    const allowed = names.find((name) => judge.judge({ name, port, address }).allowed);
    if (allowed === undefined && judge.looksAtNames) {
      const greeted = await this.#greetedName(socket);
      if (greeted !== undefined) return this.#egress.dial({ host: greeted, port }, socket);
    }
    // Reports a refusal if nothing allowed it.
    return this.#egress.dial({ host: allowed ?? names[0] ?? text, port, address: text }, socket);
  }

  /** The name in the greeting, which is left to be read again. */
  async #greetedName(socket: Socket): Promise<string | undefined> {
    const waiting = new AbortController();
    try {
      const first = await Promise.race([readFirst(socket), delay(this.#nameMs, undefined, { signal: waiting.signal })]);
      if (first === undefined) return undefined;
      if (first.bytes.length > 0) socket.unshift(first.bytes);
      return first.greeting.kind === "named" ? hostName(first.greeting.name) : undefined;
    } finally {
      waiting.abort();
    }
  }
}
