import { createHash } from "node:crypto";
import { isSandboxId } from "@sandboxer/protocol";
import { z } from "zod";
import { type ObjectStore, trySwap } from "../store/store.ts";
import { jsonOf } from "../support/json.ts";

const claimSchema = z.looseObject({
  format: z.literal(1),
  key: z.string(),
  sandbox_id: z.string().refine(isSandboxId),
});

/**
 * Maps a key to its sandbox when several servers may get requests for the same key at once: one cell for each key,
 * changed by compare-and-swap, so that one server wins and the others see it.
 */
export class KeyClaims {
  readonly #store: ObjectStore;

  constructor(store: ObjectStore) {
    this.#store = store;
  }

  /** The sandbox of the key, if it was ever acquired. It may have been deleted. */
  async get(key: string): Promise<string | undefined> {
    const cell = await this.#store.readCell(cellKeyOf(key));
    return cell === undefined ? undefined : decode(cell.body);
  }

  /** Whether the key now belongs to this sandbox. An earlier sandbox of the key counts only if it still exists. */
  async take(key: string, sandboxId: string, isThere: (sandboxId: string) => Promise<boolean>): Promise<boolean> {
    const cellKey = cellKeyOf(key);
    for (;;) {
      const cell = await this.#store.readCell(cellKey);
      const present = cell === undefined ? undefined : decode(cell.body);
      if (present === sandboxId) return true;
      if (present !== undefined && (await isThere(present))) return false;
      const body = Buffer.from(`${JSON.stringify({ format: 1, key, sandbox_id: sandboxId })}\n`);
      if ((await trySwap(this.#store, cellKey, cell?.version, body)).outcome === "written") return true;
    }
  }
}

function cellKeyOf(key: string): string {
  return `acquire-keys/${createHash("sha256").update(key).digest("hex")}.json`;
}

/** An unreadable claim counts as none. */
function decode(body: Uint8Array): string | undefined {
  return claimSchema.safeParse(jsonOf(body)).data?.sandbox_id;
}
