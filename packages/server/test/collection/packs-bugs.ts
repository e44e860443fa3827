import type { ListedObject, ObjectStore } from "../../src/store/store.ts";
import { replaced } from "./planted-bugs.ts";

export interface PlantedBug {
  readonly writer?: (store: ObjectStore) => ObjectStore;
  readonly collector?: (store: ObjectStore) => ObjectStore;
}

/** Ways to share packs or to sweep them that are wrong, each as a store that makes the right code do it. */
export const PACK_BUGS = {
  "a writer that does not pin": {
    writer: (store) =>
      replaced(store, {
        writeText: async (key, text) => (isPin(key) ? undefined : await store.writeText(key, text)),
      }),
  },
  "a writer that pins after it has looked": {
    writer: (store) => {
      const late = new Map<string, string>();
      return replaced(store, {
        writeText: async (key, text) => {
          if (isPin(key)) late.set(key, text);
          else await store.writeText(key, text);
        },
        write: async (...given) => {
          for (const [key, text] of late) await store.writeText(key, text);
          late.clear();
          return await store.write(...given);
        },
      });
    },
  },
  "a writer that does not look whether its base is there": {
    writer: (store) => replaced(store, { stat: async () => ({ sizeBytes: 1 }) }),
  },
  "a writer that removes its pin before its image is there": {
    writer: (store) =>
      replaced(store, {
        write: async (key, ...rest) => {
          if (key.endsWith(".img")) for await (const pin of store.list("pins")) await store.delete(pin.key);
          return await store.write(key, ...rest);
        },
      }),
  },
  "a writer that does not mark what it shares": {
    writer: (store) =>
      replaced(store, {
        write: async (key, ...rest) =>
          isMark(key) ? { outcome: "written", sizeBytes: 0 } : await store.write(key, ...rest),
      }),
  },
  "a writer that marks what it shares after its image is there": {
    writer: (store) => {
      const late: string[] = [];
      return replaced(store, {
        write: async (key, ...rest) => {
          if (isMark(key)) late.push(key);
          else return await store.write(key, ...rest);
          return { outcome: "written", sizeBytes: 0 };
        },
        delete: async (key) => {
          await store.delete(key);
          if (isPin(key)) for (const mark of late.splice(0)) await store.writeText(mark, "");
        },
      });
    },
  },
  "a collector that looks at marks before pins only": {
    collector: (store) => {
      const seen = new Map<string, ListedObject[]>();
      return replaced(store, {
        list: async function* (folder) {
          if (!folder.startsWith("packs/")) return yield* store.list(folder);
          const listed = seen.get(folder) ?? (await Array.fromAsync(store.list(folder)));
          seen.set(folder, listed);
          yield* listed;
        },
      });
    },
  },
  "a writer that does not look at what is condemned": {
    writer: (store) =>
      replaced(store, {
        list: async function* (folder) {
          if (folder !== "condemned") yield* store.list(folder);
        },
      }),
  },
  "a collector that does not say what it condemns": {
    collector: (store) =>
      replaced(store, {
        writeText: async (key, text) => (key.startsWith("condemned/") ? undefined : await store.writeText(key, text)),
      }),
  },
  "a collector that removes what others have condemned": {
    collector: (store) =>
      replaced(store, {
        list: async function* (folder) {
          if (folder === "condemned") for await (const { key } of store.list(folder)) await store.delete(key);
          else yield* store.list(folder);
        },
      }),
  },
  "a collector that looks at images before pins only": {
    collector: (store) => {
      let images: ListedObject[] | undefined;
      return replaced(store, {
        list: async function* (folder) {
          if (folder === "") yield* (images ??= await Array.fromAsync(store.list("")));
          else yield* store.list(folder);
        },
      });
    },
  },
  "a collector that looks once": {
    collector: (store) => {
      const seen = new Map<string, ListedObject[]>();
      return replaced(store, {
        list: async function* (folder) {
          if (folder !== "" && folder !== "pins") return yield* store.list(folder);
          const listed = seen.get(folder) ?? (await Array.fromAsync(store.list(folder)));
          seen.set(folder, listed);
          yield* listed;
        },
      });
    },
  },
  "a collector that looks at pins after images": {
    collector: (store) => {
      let ahead: ListedObject[] | undefined;
      return replaced(store, {
        list: async function* (folder) {
          const listed = folder === "" && ahead !== undefined ? ahead : undefined;
          if (folder === "pins") ahead = await Array.fromAsync(store.list(""));
          if (folder === "") ahead = undefined;
          yield* listed ?? store.list(folder);
        },
      });
    },
  },
  "a collector that sweeps what is not published": {
    collector: (store) =>
      replaced(store, {
        read: async function* (key, options) {
          if (!isPin(key)) return yield* store.read(key, options);
          const text = Buffer.concat(await Array.fromAsync(store.read(key))).toString();
          yield Buffer.from(JSON.stringify({ ...(JSON.parse(text) as object), uuid: "nobody" }));
        },
      }),
  },
} as const satisfies Record<string, PlantedBug>;

/** Removes the pins of the dead without a look at what they may still publish. */
export const FORGETS_WHO_MAY_PUBLISH: PlantedBug = {
  collector: (store) =>
    replaced(store, {
      listFolders: async function* (folder) {
        if (folder !== "") yield* store.listFolders(folder);
      },
    }),
};

function isMark(key: string): boolean {
  return key.endsWith(".shared");
}

function isPin(key: string): boolean {
  return key.startsWith("pins/");
}
