import { deadRecord, encodeRecord } from "../../src/lease/liveness-record.ts";
import type { Cell, ObjectStore } from "../../src/store/store.ts";

/** Ways to collect that are wrong, each as a store that makes the right collector do it. */
export const PLANTED_BUGS = {
  "does not look at the head again": (store: ObjectStore) => {
    const parked = new Map<string, Cell>();
    return replaced(store, {
      readCell: async (key) => {
        const cell = parked.get(key) ?? (await store.readCell(key));
        if (cell !== undefined && Buffer.from(cell.body).includes('"state": "parked"')) parked.set(key, cell);
        return cell;
      },
    });
  },
  "leaves no mark": (store: ObjectStore) =>
    replaced(store, {
      writeText: async (key, text) => (key.endsWith(".removed") ? undefined : await store.writeText(key, text)),
    }),
  "does not move the head of a dead owner": withoutMovingHeads,
  "takes every server for dead, and moves no head": (store: ObjectStore) =>
    replaced(withoutMovingHeads(store), {
      readCell: async (key) => {
        const cell = await store.readCell(key);
        return key.startsWith("instances/") && cell !== undefined
          ? { ...cell, body: encodeRecord(deadRecord("nobody")) }
          : cell;
      },
    }),
} as const satisfies Record<string, (store: ObjectStore) => ObjectStore>;

function withoutMovingHeads(store: ObjectStore): ObjectStore {
  return replaced(store, {
    swapCell: async (key, expected, body) =>
      key.endsWith("/metadata.json") && expected !== undefined
        ? { outcome: "written", version: expected }
        : await store.swapCell(key, expected, body),
  });
}

/** Removes images of snapshots without having their records say so, before or after. */
export function withoutCondemning(store: ObjectStore): ObjectStore {
  return replaced(store, {
    deleteCell: async (key) => (key.endsWith("/record.json") ? undefined : await store.deleteCell(key)),
    deleteTree: async () => {},
    swapCell: async (key, expected, body) =>
      key.endsWith("/record.json")
        ? { outcome: "written", version: expected ?? "" }
        : await store.swapCell(key, expected, body),
  });
}

/** Sees the folders of sandboxes that were there at its first look, and no others. */
export function withoutLookingAgain(store: ObjectStore): ObjectStore {
  let first: Promise<string[]> | undefined;
  return replaced(store, {
    listFolders: async function* (folder) {
      if (folder !== "") return yield* store.listFolders(folder);
      first ??= Array.fromAsync(store.listFolders(folder));
      yield* await first;
    },
  });
}

export function replaced(store: ObjectStore, methods: Partial<ObjectStore>): ObjectStore {
  return new Proxy<ObjectStore>(store, {
    get: (target, property) => {
      const value: unknown = Reflect.get(methods, property) ?? Reflect.get(target, property);
      return typeof value === "function" ? (value.bind(target) as unknown) : value;
    },
  });
}
