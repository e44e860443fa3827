import type { Violation } from "./violation.ts";

interface Execution {
  readonly sentMs: number;
  readonly answeredMs: number;
  readonly server: number;
  readonly epoch: number;
}

/**
 * The servers that executed in a sandbox. Each call was fenced with an epoch, so a call that was sent after a newer
 * epoch had answered must not succeed, and one epoch belongs to one server.
 */
export class OwnerHistory {
  readonly #executions: Execution[] = [];
  readonly #serverOf = new Map<number, number>();

  /** In the order of the answers. */
  take({ sentMs, answeredMs, server, epoch }: Execution): Violation | undefined {
    const other = this.#serverOf.get(epoch);
    const newer = this.#executions.find((earlier) => earlier.answeredMs < sentMs && earlier.epoch > epoch);
    this.#serverOf.set(epoch, other ?? server);
    this.#executions.push({ sentMs, answeredMs, server, epoch });
    if (other !== undefined && other !== server) {
      return { rule: "two owners", what: `Servers ${other} and ${server} both executed at epoch ${epoch}.` };
    }
    if (newer === undefined) return undefined;
    const what = `Server ${server} executed at epoch ${epoch} after server ${newer.server} had at epoch ${newer.epoch}.`;
    return { rule: "two owners", what };
  }
}
