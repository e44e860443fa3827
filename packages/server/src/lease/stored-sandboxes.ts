import { asSandboxerError, type Head, isSandboxId, type SandboxerError } from "@sandboxer/protocol";
import type { ObjectStore } from "../store/store.ts";
import { isStoreFailure } from "../support/record-damage.ts";
import { beginAhead } from "../support/begin-ahead.ts";
import { readHead } from "./stored-head.ts";

/** A sandbox in the store: with its head, or without one (an import in the seeds' layout), or unreadable. */
export interface StoredSandbox {
  readonly sandboxId: string;
  readonly head: Head | undefined;
  readonly error: SandboxerError | undefined;
}

const READS_AHEAD = 16;

export async function* listStoredSandboxes(store: ObjectStore): AsyncIterable<StoredSandbox> {
  yield* beginAhead(storedSandboxIds(store), READS_AHEAD, (sandboxId) => readStoredSandbox(store, sandboxId));
}

async function* storedSandboxIds(store: ObjectStore): AsyncIterable<string> {
  for await (const name of store.listFolders("")) if (isSandboxId(name)) yield name;
}

/** A damaged head does not hide the others; a failing store does. */
export async function readStoredSandbox(store: ObjectStore, sandboxId: string): Promise<StoredSandbox> {
  try {
    return { sandboxId, head: await readHead(store, sandboxId), error: undefined };
  } catch (error) {
    if (isStoreFailure(error)) throw error;
    return { sandboxId, head: undefined, error: asSandboxerError(error) };
  }
}
