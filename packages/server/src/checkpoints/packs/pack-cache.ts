import { randomUUID } from "node:crypto";
import { createWriteStream } from "node:fs";
import { mkdir, readdir, rename, rm, stat, utimes } from "node:fs/promises";
import { join } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { ObjectStore } from "../../store/store.ts";
import { unlessAborted } from "../../support/unless-aborted.ts";
import { type Kept, removeAbandonedDrafts, tooMuch } from "../local-room.ts";
import { isPackId, LARGEST_PACK_BYTES, packKey } from "./pack-names.ts";
import { nextEvent } from "../../support/next-event.ts";

/**
 * Packs of a remote store, as files on this machine's disk. Readers detect damage, since every block is compared with
 * its digest; {@link forget} then makes room for a good copy. Other processes may use the same folder: a pack that one
 * of them removes is a miss.
 */
export class PackCache {
  /** The limit of cached bytes, and of bytes that one reader holds at a time. */
  readonly limitBytes: number;
  readonly #folder: string;
  readonly #held = new Map<string, number>();
  readonly #underWay = new Map<string, Promise<void>>();
  readonly #going = new Map<string, Promise<void>>();

  constructor(folder: string, limitBytes: number) {
    this.#folder = folder;
    this.limitBytes = limitBytes;
  }

  path(id: string): string {
    return join(this.#folder, id);
  }

  /** Fetches a pack unless it is cached, and holds it until {@link release}. Throws ObjectNotFoundError. */
  async hold(store: ObjectStore, id: string, signal?: AbortSignal): Promise<string> {
    this.#held.set(id, (this.#held.get(id) ?? 0) + 1);
    try {
      await this.#going.get(id);
      signal?.throwIfAborted();
      // The fetch is shared, and continues if this caller is aborted.
      if (!(await this.#touch(id))) {
        await unlessAborted(this.#fetchOnce(store, id), signal);
        await this.#evict().catch(() => {});
      }
      return this.path(id);
    } catch (error) {
      this.#letGo(id);
      throw error;
    }
  }

  /** Whether a pack is cached; held if so. */
  async holdIfHere(id: string): Promise<string | undefined> {
    this.#held.set(id, (this.#held.get(id) ?? 0) + 1);
    await this.#going.get(id);
    if (await this.#touch(id)) return this.path(id);
    this.#letGo(id);
    return undefined;
  }

  async release(ids: readonly string[]): Promise<void> {
    for (const id of ids) this.#letGo(id);
    await this.#evict().catch(() => {});
  }

  async forget(id: string): Promise<void> {
    await rm(this.path(id), { force: true });
  }

  /** A pack that is being written to the store, cached on the way. Failures to cache it do not fail the write. */
  async *keeping(id: string, chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
    const draft = this.#draft();
    const stream = await this.#openDraft(draft);
    let complete = false;
    let seenBytes = 0;
    try {
      for await (const chunk of chunks) {
        seenBytes += chunk.byteLength;
        // Copied: the producer may reuse its memory.
        if (stream?.writable === true && !stream.write(Buffer.from(chunk))) await nextEvent(stream, ["drain", "close"]);
        yield chunk;
      }
      complete = true;
    } finally {
      await this.#settle(id, draft, stream, complete ? seenBytes : undefined);
    }
  }

  async #openDraft(path: string) {
    try {
      await mkdir(this.#folder, { recursive: true, mode: 0o700 });
    } catch {
      return undefined;
    }
    const stream = createWriteStream(path, { flags: "wx", mode: 0o600 });
    stream.on("error", () => stream.destroy());
    return stream;
  }

  async #settle(
    id: string,
    draft: string,
    stream: ReturnType<typeof createWriteStream> | undefined,
    wholeBytes: number | undefined,
  ) {
    if (stream === undefined) return;
    const written = await new Promise<boolean>((resolve) => {
      if (stream.destroyed) return resolve(false);
      stream.once("error", () => resolve(false));
      stream.end((error?: Error | null) => resolve(error == null));
    });
    if (written && stream.bytesWritten === wholeBytes) await rename(draft, this.path(id)).catch(() => {});
    await rm(draft, { force: true }).catch(() => {});
    await this.#evict().catch(() => {});
  }

  async #fetchOnce(store: ObjectStore, id: string): Promise<void> {
    const present = this.#underWay.get(id);
    if (present !== undefined) return await present;
    const fetching = this.#fetch(store, id).finally(() => this.#underWay.delete(id));
    this.#underWay.set(id, fetching);
    await fetching;
  }

  async #fetch(store: ObjectStore, id: string): Promise<void> {
    await mkdir(this.#folder, { recursive: true, mode: 0o700 });
    const draft = this.#draft();
    try {
      const bytes = Readable.from(store.read(packKey(id), { end: LARGEST_PACK_BYTES }));
      await pipeline(bytes, createWriteStream(draft, { flags: "wx", mode: 0o600 }));
      await rename(draft, this.path(id));
    } finally {
      await rm(draft, { force: true });
    }
  }

  #draft(): string {
    return join(this.#folder, `.draft-${randomUUID()}`);
  }

  /** Marks it as used now. */
  async #touch(id: string): Promise<boolean> {
    const now = new Date();
    return await utimes(this.path(id), now, now).then(
      () => true,
      () => false,
    );
  }

  #letGo(id: string): void {
    const holders = (this.#held.get(id) ?? 1) - 1;
    if (holders === 0) this.#held.delete(id);
    else this.#held.set(id, holders);
  }

  /** Held packs count too, but stay. */
  async #evict(): Promise<void> {
    const names = (await readdir(this.#folder).catch(() => [])).filter((name) => isPackId(name));
    const look = async (name: string): Promise<Kept> => {
      const found = await stat(this.path(name)).catch(() => undefined);
      return { name, sizeBytes: found?.size ?? 0, usedMs: found?.mtimeMs ?? 0 };
    };
    const kept = await Promise.all(names.map(look));
    const [held, others] = [true, false].map((isHeld) => kept.filter(({ name }) => this.#held.has(name) === isHeld));
    const heldBytes = (held ?? []).reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
    const limitBytes = Math.max(0, this.limitBytes - heldBytes);
    for (const name of await tooMuch(this.#folder, limitBytes, others ?? [])) {
      if (this.#held.has(name)) continue;
      // A caller that wants it from now on waits until it is removed, and fetches it.
      const going = this.forget(name).finally(() => this.#going.delete(name));
      this.#going.set(name, going);
      await going;
    }
    await removeAbandonedDrafts(this.#folder);
  }
}
