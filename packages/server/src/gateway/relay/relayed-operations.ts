import { z } from "zod";

const KEEP = 1000;

const operationSchema = z.object({ id: z.string().min(1).max(128) });

/** Which server has an operation that was begun through this one: whoever was told of it here asks for it here. */
export class RelayedOperations {
  /** Oldest first. */
  readonly #servers = new Map<string, string>();

  /** `answer`: the record of the operation, as the other server has told it. */
  note(answer: string, instanceId: string): void {
    const id = idIn(answer);
    if (id === undefined) return;
    this.#servers.delete(id);
    this.#servers.set(id, instanceId);
    const [oldest] = this.#servers.keys();
    if (oldest !== undefined && this.#servers.size > KEEP) this.#servers.delete(oldest);
  }

  serverOf(operationId: string): string | undefined {
    return this.#servers.get(operationId);
  }
}

function idIn(answer: string): string | undefined {
  try {
    return operationSchema.safeParse(JSON.parse(answer)).data?.id;
  } catch {
    return undefined;
  }
}
