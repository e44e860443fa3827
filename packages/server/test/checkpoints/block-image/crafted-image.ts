import { createHash, randomUUID } from "node:crypto";
import { zstdCompressSync } from "node:zlib";
import { type BlockEntry, encodeTable, zeroEntry } from "../../../src/checkpoints/blocks/block-table.ts";
import { encodeFooter, encodeHeaderStart } from "../../../src/checkpoints/image-format.ts";
import type { ObjectStore } from "../../../src/store/store.ts";
import { BLOCK } from "./block-images.ts";

export const CRAFTED_KEY = "sandbox/checkpoints/crafted.img";

export interface Crafted {
  /** The blocks in the image itself. */
  readonly inImage?: Uint8Array;
  readonly table: Buffer;
  readonly members?: readonly object[];
  readonly packs?: readonly object[];
  /** Changes the claims of the parts. */
  readonly envelope?: object;
  readonly requirements?: object;
}

export function sha256(bytes: Uint8Array): Buffer {
  return createHash("sha256").update(bytes).digest();
}

/** A block that is in the image itself; its bytes are `plain`. */
export function entryOf(plain: Uint8Array, given: Partial<BlockEntry>): BlockEntry {
  return { ...zeroEntry(plain.byteLength), codec: 1, sha256: sha256(plain), storedBytes: plain.byteLength, ...given };
}

/** Writes an image with valid digests, whatever it claims. */
export async function writeCrafted(store: ObjectStore, crafted: Crafted): Promise<void> {
  const { inImage = Buffer.alloc(0), table, packs = [], requirements = {} } = crafted;
  const blocks = table.byteLength / 80;
  const members = crafted.members ?? [{ name: "memory", size_bytes: blocks * BLOCK, first_block: 0, blocks }];
  const state = { sandbox_id: "sandbox", kind: "fake-state", created_at: "", parent: null, requirements };
  const storedTable = zstdCompressSync(table);
  const manifest = zstdCompressSync(Buffer.from(JSON.stringify({ format: 2, ...state, members })));
  const envelope = Buffer.from(
    JSON.stringify({
      format: 2,
      writer_id: randomUUID(),
      packs,
      blocks: { size_bytes: inImage.byteLength },
      table: { size_bytes: storedTable.byteLength, sha256: sha256(storedTable).toString("hex"), entries: blocks },
      manifest: { size_bytes: manifest.byteLength, sha256: sha256(manifest).toString("hex") },
      encryption: null,
      ...crafted.envelope,
    }),
  );
  const body = Buffer.concat([encodeHeaderStart(2), inImage, storedTable, manifest]);
  const footer = encodeFooter({
    format: 2,
    manifestOffset: body.byteLength,
    manifestBytes: envelope.byteLength,
    manifestSha256: sha256(envelope).toString("hex"),
  });
  await store.write(CRAFTED_KEY, [body, envelope, footer]);
}

/** A table of `blocks` blocks that each depend on two, and these on two, up to the maximum depth. */
export function deepTable(blocks: number): Buffer {
  const depths = [3, 2, 1];
  const chain = depths.map((depth, index) => {
    const reference = blocks + index + 1;
    return { ...zeroEntry(BLOCK), codec: 3 as const, depth, reference, secondReference: reference };
  });
  const tail = encodeTable([...chain, zeroEntry(BLOCK)]);
  const block = encodeTable([{ ...zeroEntry(BLOCK), codec: 3, depth: 4, reference: blocks, secondReference: blocks }]);
  const table = Buffer.alloc(blocks * block.byteLength, block);
  return Buffer.concat([table, tail]);
}
