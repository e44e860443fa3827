import type { ObjectStore } from "../../store/store.ts";
import type { PackCache } from "./pack-cache.ts";
import { packKey } from "./pack-names.ts";

/** Paths of a store's packs as files that threads can read, while one image is processed. */
export interface PackFiles {
  /** Fetches the pack if necessary, and then throws ObjectNotFoundError; otherwise opening it detects a missing one. */
  file(id: string, signal?: AbortSignal): Promise<string>;
  /** Only if it is already on this machine. */
  fileIfHere(id: string): Promise<string | undefined>;
  close(): Promise<void>;
}

export function openPackFiles(store: ObjectStore, cache: PackCache): PackFiles {
  if (store.localFile !== undefined) {
    const file = async (id: string): Promise<string> => store.localFile?.(packKey(id)) ?? "";
    return { file, fileIfHere: file, close: async () => {} };
  }
  const held: string[] = [];
  return {
    file: async (id, signal) => {
      const path = await cache.hold(store, id, signal);
      held.push(id);
      return path;
    },
    fileIfHere: async (id) => {
      const path = await cache.holdIfHere(id);
      if (path !== undefined) held.push(id);
      return path;
    },
    close: async () => await cache.release(held.splice(0)),
  };
}
