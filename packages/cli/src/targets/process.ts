import type { ProcessRecord } from "@sandboxer/protocol";
import type { Transport } from "@sandboxer/client/transport";
import { type Candidate, pick } from "./match.ts";

/** A process that was started over the API: by its id, a prefix of it, or its PID. */
export async function findProcess(client: Transport, id: string, given: string, saved = false): Promise<ProcessRecord> {
  const { items } = await client.call("listProcesses", { params: { id }, query: { saved } });
  return pickProcess(given, items);
}

export function pickProcess<Item extends Candidate & { readonly pid: number }>(
  given: string,
  processes: readonly Item[],
): Item {
  const byNumber = /^\d+$/.test(given) ? processes.filter(({ pid }) => pid === Number(given)) : [];
  return byNumber.length === 1 && byNumber[0] !== undefined
    ? byNumber[0]
    : pick(given, processes, "process", "process_not_found");
}
