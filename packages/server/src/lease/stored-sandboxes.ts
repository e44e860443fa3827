import { asSandboxerError, type Head, isSandboxId, type SandboxerError } from "@sandboxer/protocol";
import type { ObjectStore } from "../store/store.ts";
import { readHead } from "./stored-head.ts";

/** A sandbox in the store: with its head, or without one (an import in the seeds' layout), or unreadable. */
export interface StoredSandbox {
  readonly sandboxId: string;
  readonly head: Head | undefined;
  readonly error: SandboxerError | undefined;
}

const READS_AT_ONCE = 16;

export async function* listStoredSandboxes(store: ObjectStore): AsyncIterable<StoredSandbox> {
  const underWay: Promise<StoredSandbox>[] = [];
  for await (const name of store.listFolders("")) {
    if (!isSandboxId(name)) continue;
    underWay.push(readOne(store, name));
    const oldest = underWay.length < READS_AT_ONCE ? undefined : underWay.shift();
    if (oldest !== undefined) yield await oldest;
  }
  for (const read of underWay) yield await read;
}

/** Never rejects: one damaged head does not hide the others. */
async function readOne(store: ObjectStore, sandboxId: string): Promise<StoredSandbox> {
  try {
    return { sandboxId, head: await readHead(store, sandboxId), error: undefined };
  } catch (error) {
    return { sandboxId, head: undefined, error: asSandboxerError(error) };
  }
}
