import { z } from "zod";
import { jsonOf } from "../../support/json.ts";
import { unlessDamaged } from "../../support/record-damage.ts";
import { MOST_NAMES, type ObjectStore } from "../store.ts";
import { behind, INDEX_FOLDER, parseName } from "./index-names.ts";

export const INDEX_STATE_KEY = `${INDEX_FOLDER}/state.json`;
/** A name for each server that writes entries: its id. */
export const WRITERS_FOLDER = `${INDEX_FOLDER}/servers`;

export const indexStateSchema = z.looseObject({
  format: z.literal(1),
  /** Servers that wrote no entries and were dead when all heads were last compared with the index. */
  examined: z.array(z.string()),
  nonce: z.string(),
  history: z.array(z.string()),
});
export type IndexState = z.infer<typeof indexStateSchema>;

/** `absent`: the index was never built. `unreadable`: a later release may have changed it, so it is left alone. */
export async function readIndexState(store: ObjectStore): Promise<IndexState | "absent" | "unreadable"> {
  const cell = await store.readCell(INDEX_STATE_KEY).catch(unlessDamaged);
  if (cell === undefined) return "absent";
  return (cell !== "damaged" && indexStateSchema.safeParse(jsonOf(cell.body)).data) || "unreadable";
}

/** All names in a folder, in their order. */
export async function* namesIn(store: ObjectStore, folder: string): AsyncGenerator<string, void, undefined> {
  for (let after: string | undefined; ;) {
    const names = await store.listNames(folder, { after, limit: MOST_NAMES });
    yield* names;
    if (names.length < MOST_NAMES) return;
    after = names.at(-1);
  }
}

/** Reads the index of a store. */
export class StoreIndex {
  readonly #store: ObjectStore;
  readonly #serverIds: () => Promise<readonly string[]>;

  /** `serverIds`: every server with a liveness record, the dead ones included. */
  constructor(store: ObjectStore, serverIds: () => Promise<readonly string[]>) {
    this.#store = store;
    this.#serverIds = serverIds;
  }

  /**
   * Whether it has everything now. Otherwise read the heads or records themselves. A server without a name among the
   * writers may have written heads without entries, until all heads are compared after its death.
   */
  async isComplete(): Promise<boolean> {
    const [state, serverIds, writers] = await Promise.all([
      readIndexState(this.#store),
      this.#serverIds(),
      Array.fromAsync(namesIn(this.#store, WRITERS_FOLDER)),
    ]);
    if (typeof state === "string") return false;
    const known = new Set([...state.examined, ...writers]);
    return serverIds.every((instanceId) => known.has(instanceId));
  }

  /**
   * The ids that all of these views have, in the order of lists. Each is to be confirmed by its head or record: an entry
   * may be outdated, never missing. Only names are read, 1,000 with each request.
   */
  async *ids(views: readonly string[], after?: string): AsyncGenerator<string, void, undefined> {
    const cursors = views.map((view) => new ViewCursor(this.#store, `${INDEX_FOLDER}/${view}`));
    let from = after === undefined ? "" : behind(after);
    for (;;) {
      const found = await firstInAll(cursors, from);
      if (found === undefined) return;
      yield found.id;
      from = behind(found.place);
    }
  }
}

interface Found {
  readonly place: string;
  readonly id: string;
}

/** Each view in turn moves on to the place where the one before it is, until all are at the same. */
async function firstInAll(cursors: readonly ViewCursor[], from: string): Promise<Found | undefined> {
  let found: Found | undefined;
  for (let turn = 0, agreed = 0; agreed < cursors.length; turn++) {
    const next = await cursors[turn % cursors.length]?.first(found?.place ?? from);
    if (next === undefined) return undefined;
    agreed = next.place === found?.place ? agreed + 1 : 1;
    found = next;
  }
  return found;
}

class ViewCursor {
  readonly #store: ObjectStore;
  readonly #folder: string;
  #names: readonly string[] = [];
  #at = 0;
  #isLast = false;

  constructor(store: ObjectStore, folder: string) {
    this.#store = store;
    this.#folder = folder;
  }

  /** The first place that is not before this position. Positions must not go back. */
  async first(position: string): Promise<Found | undefined> {
    for (;;) {
      for (; this.#at < this.#names.length; this.#at++) {
        const name = this.#names[this.#at] ?? "";
        const found = name < position ? undefined : parseName(name);
        if (found !== undefined) return found;
      }
      if (this.#isLast) return undefined;
      // Lists begin after a name, and the position itself may be one.
      const last = this.#names.at(-1) ?? "";
      const before = position.slice(0, -1);
      const after = before > last ? before : last;
      this.#names = await this.#store.listNames(this.#folder, {
        after: after === "" ? undefined : after,
        limit: MOST_NAMES,
      });
      this.#at = 0;
      this.#isLast = this.#names.length < MOST_NAMES;
    }
  }
}
