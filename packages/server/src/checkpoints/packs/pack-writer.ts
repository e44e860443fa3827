import { SandboxerError } from "@sandboxer/protocol";
import type { ObjectStore } from "../../store/store.ts";
import { readBack, summing } from "../read-back.ts";
import type { PackCache } from "./pack-cache.ts";
import { packId, packKey } from "./pack-names.ts";
import { ChunkChannel } from "./chunk-channel.ts";

/** A pack: magic, format, zeros, then contiguous blocks. The images that reference them describe them. */
const PACK_FORMAT = 1;
const PACK_MAGIC: Uint8Array = Buffer.from("SBX-PACK", "latin1");
const PACK_HEADER_BYTES = 16;

/** Large enough to be few, small enough to be fetched in parallel and to be read back while the next one is written. */
const PACK_BYTES = 48 * 1024 * 1024;
/** How many are being written at once. */
const PACKS_AT_ONCE = 3;

export interface WrittenPack {
  readonly id: string;
  readonly size_bytes: number;
}

export interface PackWriterOptions {
  readonly store: ObjectStore;
  readonly cache: PackCache;
  readonly writerId: string;
  /** The sandbox or snapshot of the image; absent: the packs have no owner. */
  readonly owner?: string | undefined;
  readonly signal?: AbortSignal;
}

/** Writes blocks to packs, one after the other. A pack is done when it is durable and was read back. */
export class PackWriter {
  readonly #options: PackWriterOptions;
  readonly #packs: Promise<WrittenPack>[] = [];
  #current: { readonly channel: ChunkChannel; sizeBytes: number } | undefined;

  constructor(options: PackWriterOptions) {
    this.#options = options;
  }

  /** The location of the bytes. They are not copied, and must not change any more. */
  async add(bytes: Uint8Array): Promise<{ readonly pack: number; readonly offset: number }> {
    if (this.#current !== undefined && this.#current.sizeBytes + bytes.byteLength > PACK_BYTES) this.#finishCurrent();
    this.#current ??= await this.#begin();
    const place = { pack: this.#packs.length - 1, offset: this.#current.sizeBytes };
    this.#current.sizeBytes += bytes.byteLength;
    await this.#current.channel.push(bytes);
    return place;
  }

  /** In the order of their numbers; resolves when all are in the store and read back. */
  async finish(): Promise<readonly WrittenPack[]> {
    this.#finishCurrent();
    return await Promise.all(this.#packs);
  }

  /** Removes what was written. */
  async abort(reason: Error): Promise<void> {
    this.#current?.channel.fail(reason);
    await Promise.allSettled(this.#packs);
    for (const number of this.#packs.keys()) await this.#options.store.delete(packKey(this.#idOf(number)));
  }

  #finishCurrent(): void {
    this.#current?.channel.end();
    this.#current = undefined;
  }

  async #begin(): Promise<{ channel: ChunkChannel; sizeBytes: number }> {
    const tooMany = this.#packs.at(-PACKS_AT_ONCE);
    if (tooMany !== undefined) await tooMany;
    const id = this.#idOf(this.#packs.length);
    const channel = new ChunkChannel();
    const written = this.#write(id, channel);
    // A failure surfaces in `finish`; until then pushing detects it.
    written.catch((error: unknown) => channel.fail(error as Error));
    this.#packs.push(written);
    await channel.push(encodePackHeader());
    return { channel, sizeBytes: PACK_HEADER_BYTES };
  }

  #idOf(number: number): string {
    return packId(this.#options.writerId, number, this.#options.owner);
  }

  async #write(id: string, channel: ChunkChannel): Promise<WrittenPack> {
    const { store, cache, signal } = this.#options;
    const sum = { crc: 0, sizeBytes: 0 };
    const summed = summing(channel, sum);
    const chunks = store.localFile === undefined ? cache.keeping(id, summed) : summed;
    const options = { ifAbsent: true, ...(signal === undefined ? {} : { signal }) };
    const { outcome } = await store.write(packKey(id), chunks, options);
    if (outcome === "conflict") throw new SandboxerError("internal", `The fresh name ${packKey(id)} is taken.`);
    await readBack(store, packKey(id), sum, signal);
    return { id, size_bytes: sum.sizeBytes };
  }
}

function encodePackHeader(): Uint8Array {
  const header = Buffer.alloc(PACK_HEADER_BYTES);
  header.set(PACK_MAGIC, 0);
  header.writeUInt32LE(PACK_FORMAT, 8);
  return header;
}
