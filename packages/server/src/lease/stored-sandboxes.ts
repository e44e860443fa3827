import { asSandboxerError, type Head, isSandboxId, type SandboxerError } from "@sandboxer/protocol";
import type { ObjectStore } from "../store/store.ts";
import type { HeadStore } from "./head-store.ts";

/** A sandbox in the store: with its head, or without one (an import in the seeds' layout), or unreadable. */
export interface StoredSandbox {
  readonly sandboxId: string;
  readonly head: Head | undefined;
  readonly error: SandboxerError | undefined;
}

const READS_AT_ONCE = 16;

export async function* listStoredSandboxes(store: ObjectStore, heads: HeadStore): AsyncIterable<StoredSandbox> {
  const underWay: Promise<StoredSandbox>[] = [];
  for await (const name of store.listFolders("")) {
    if (!isSandboxId(name)) continue;
    underWay.push(readOne(heads, name));
    const oldest = underWay.length < READS_AT_ONCE ? undefined : underWay.shift();
    if (oldest !== undefined) yield await oldest;
  }
  for (const read of underWay) yield await read;
}

/** Never rejects: one damaged head does not hide the others. */
async function readOne(heads: HeadStore, sandboxId: string): Promise<StoredSandbox> {
  try {
    const found = await heads.read(sandboxId);
    return { sandboxId, head: found?.head, error: undefined };
  } catch (error) {
    return { sandboxId, head: undefined, error: asSandboxerError(error) };
  }
}
