import { z } from "zod";
import { stateFields } from "../image-format.ts";
import { isPackId, LARGEST_PACK_BYTES } from "../packs/pack-names.ts";

/**
 * Image formats 2, 3 and 4: one file that lists the blocks of a saved state, and contains the few that are not in packs.
 * COMPATIBILITY.md describes it byte by byte. Format 3 differs in the ids of its packs, which name their owner: a server
 * that does not support that must not use blocks from them. Format 4 is encrypted, with its origin as associated data.
 *
 *   header    16 bytes: magic, format, zeros
 *   blocks    those that are in the image itself
 *   table     one entry for each block, compressed, and encrypted where the blocks are
 *   manifest  JSON, compressed, and encrypted where the blocks are
 *   envelope  JSON, always readable: what a collection must know, and the digests of what is before it
 *   footer    64 bytes: as in format 1, for the envelope
 */
const BLOCK_FORMATS = [2, 3, 4] as const;
export type BlockFormat = (typeof BLOCK_FORMATS)[number];
export const BLOCK_IMAGE_HEADER_BYTES = 16;

/** Sequence numbers that no block has, for encrypted data other than blocks. */
export const TABLE_SEQUENCE = 0xffff_fffe;
export const MANIFEST_SEQUENCE = 0xffff_ffff;

const digest = z.string().regex(/^[0-9a-f]{64}$/);
const size = z.number().int().nonnegative();
/** For a state of a terabyte. */
const LARGEST_ENTRY_COUNT = 4 * 1024 * 1024;
/** The memory limit of a reader. */
const LARGEST_IN_IMAGE_BYTES = 16 * 1024 * 1024;
const LARGEST_TABLE_BYTES = 512 * 1024 * 1024;
export const LARGEST_MANIFEST_BYTES = 16 * 1024 * 1024;
const MOST_PACKS = 65_536;
/** A backend's state is a handful of files. */
const MOST_MEMBERS = 10_000;

export const envelopeSchema = z.looseObject({
  format: z.literal(BLOCK_FORMATS),
  /** Fresh for each image; the ids of its own packs begin with it. */
  writer_id: z.uuid(),
  packs: z
    .array(z.looseObject({ id: z.string().refine(isPackId), size_bytes: size.max(LARGEST_PACK_BYTES) }))
    .max(MOST_PACKS),
  blocks: z.looseObject({ size_bytes: size.max(LARGEST_IN_IMAGE_BYTES) }),
  table: z.looseObject({
    size_bytes: size.max(LARGEST_TABLE_BYTES),
    sha256: digest,
    entries: size.max(LARGEST_ENTRY_COUNT),
  }),
  manifest: z.looseObject({ size_bytes: size.max(LARGEST_MANIFEST_BYTES), sha256: digest }),
  /** The data key that everything is encrypted with; null: no encryption. */
  encryption: z.looseObject({ key_id: z.string() }).nullable(),
  /** In format 4: the sandbox that the image was saved from, and the image before it. */
  origin: z.looseObject({ sandbox_id: z.string(), parent: z.string().nullable() }).optional(),
});
export type Envelope = z.infer<typeof envelopeSchema>;

/** The associated data of the table and the manifest. */
export function associatedWith({ origin }: Pick<Envelope, "origin">, sandboxId = origin?.sandbox_id): string {
  return origin === undefined ? "" : `${sandboxId}\n${origin.parent ?? ""}`;
}

const memberSchema = z.looseObject({
  name: z.string().max(1024),
  size_bytes: size,
  /** Its first entry in the table, and the number of its entries. */
  first_block: size,
  blocks: size,
});
export type BlockMember = z.infer<typeof memberSchema>;

export const blockManifestSchema = z.looseObject({
  format: z.literal(BLOCK_FORMATS),
  ...stateFields,
  members: z.array(memberSchema).max(MOST_MEMBERS),
});
export type BlockManifest = z.infer<typeof blockManifestSchema>;
