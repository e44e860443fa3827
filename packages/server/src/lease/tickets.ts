import type { Head } from "@sandboxer/protocol";

export interface Ticket {
  readonly resolve: (head: Head) => void;
  readonly reject: (error: unknown) => void;
  readonly onWaiting: ((owner: string, url: string | undefined) => void) | undefined;
  readonly sandboxId: string;
}

/** Who waits for which command. */
export class Tickets {
  readonly #open = new Map<number, Ticket>();
  #last = 0;

  next(): number {
    return ++this.#last;
  }

  open(number: number, ticket: Ticket): void {
    this.#open.set(number, ticket);
  }

  get(number: number): Ticket | undefined {
    return this.#open.get(number);
  }

  /** Gives the ticket back, once. */
  take(number: number): Ticket | undefined {
    const ticket = this.#open.get(number);
    this.#open.delete(number);
    return ticket;
  }

  takeAll(): readonly Ticket[] {
    const all = [...this.#open.values()];
    this.#open.clear();
    return all;
  }
}
