import { hash, randomBytes } from "node:crypto";
import { expect, it } from "vitest";
import { checkOf } from "../../../src/checkpoints/blocks/block-check.ts";
import { BlockDamagedError, BlockReader } from "../../../src/checkpoints/blocks/block-reader.ts";
import {
  BLOCK_BYTES,
  type BlockEntry,
  CODEC,
  encodeTable,
  zeroEntry,
} from "../../../src/checkpoints/blocks/block-table.ts";
import { compress } from "../../../src/checkpoints/blocks/compression.ts";
import { derivedDigest } from "../../../src/checkpoints/blocks/derived-digest.ts";
import { changedPages, differenceOf, LARGEST_DIFFERENCE_BYTES } from "../../../src/checkpoints/blocks/difference.ts";

/** The indexes of an image's entries: two blocks that are stored whole, and one derived from the first. */
const [FIRST, OTHER, DERIVED] = [0, 1, 2];

interface Change {
  /** Of the entry of the derived block. */
  readonly entry?: Partial<BlockEntry>;
  /** A byte of what is stored of all three. */
  readonly flippedAt?: number;
  readonly heldAgainst?: "digest" | "check";
}

const [first, other] = [randomBytes(BLOCK_BYTES), randomBytes(BLOCK_BYTES)];
const block = Buffer.from(first);
block.fill("changed", 9000, 9500);
const changed = changedPages(block, first);
const bytes = compress(differenceOf(block, first, changed, Buffer.alloc(LARGEST_DIFFERENCE_BYTES)));

function whole(content: Buffer, offset: number): BlockEntry {
  const sha256 = hash("sha256", content, "buffer");
  const size = { offset, storedBytes: BLOCK_BYTES, rawBytes: BLOCK_BYTES };
  return { ...zeroEntry(BLOCK_BYTES), ...size, sha256, codec: CODEC.raw, check: checkOf(content) };
}

function readerOf({ entry = {}, flippedAt, heldAgainst = "digest" }: Change): BlockReader {
  const wholes = [whole(first, 0), whole(other, BLOCK_BYTES)];
  const digests = [wholes[FIRST]?.sha256 ?? first, undefined] as const;
  const made = { shift: 0, rawBytes: BLOCK_BYTES };
  const derived: BlockEntry = {
    ...zeroEntry(BLOCK_BYTES),
    sha256: derivedDigest({ digests, ...made, bytes }),
    codec: CODEC.derived,
    depth: 1,
    offset: 2 * BLOCK_BYTES,
    storedBytes: bytes.byteLength,
    reference: FIRST,
    check: checkOf(block),
    ...entry,
  };
  const inImage = Buffer.concat([first, other, bytes]);
  if (flippedAt !== undefined) inImage[flippedAt] = (inImage[flippedAt] ?? 0) ^ 1;
  const table = encodeTable([...wholes, derived]);
  return new BlockReader({ table, inImage, writerIds: [], writerId: "", cipher: undefined, heldAgainst });
}

function faultOf(change: Change): unknown {
  try {
    readerOf(change).read(DERIVED);
    return "none";
  } catch (error) {
    return error instanceof BlockDamagedError ? { index: error.index, problem: error.message } : error;
  }
}

it("a derived block is what its difference makes of the other", () => {
  const reader = readerOf({});
  expect(reader.read(DERIVED).equals(block)).toBe(true);
  expect(reader.isBlock(DERIVED, block)).toBe(true);
  expect(reader.isBlock(DERIVED, first)).toBe(false);
});

it.each<[string, Change, { index: number; problem: string } | string]>([
  ["whose stored bytes differ", { flippedAt: 2 * BLOCK_BYTES + 20 }, { index: DERIVED, problem: "its digest differs" }],
  [
    "whose other has changed in a page that it takes",
    { flippedAt: 5 },
    { index: FIRST, problem: "its digest differs" },
  ],
  [
    "whose other has changed in one that it does not",
    { flippedAt: 9000 },
    { index: FIRST, problem: "its digest differs" },
  ],
  ["that is taken to another one", { entry: { reference: OTHER } }, { index: DERIVED, problem: "its digest differs" }],
  ["that is moved", { entry: { shift: 4096 } }, { index: DERIVED, problem: "its digest differs" }],
  ["that is cut off", { entry: { rawBytes: BLOCK_BYTES - 1 } }, { index: DERIVED, problem: "its digest differs" }],
  [
    "whose bytes are not those that were saved",
    { entry: { check: 1n } },
    { index: DERIVED, problem: "its digest differs" },
  ],
  ["of which nothing that matters has changed", { flippedAt: BLOCK_BYTES + 5 }, "none"],
])("one %s is found", (_what, change, fault) => {
  expect(faultOf(change)).toEqual(fault);
});

it("what is written against is held against its check alone", () => {
  expect(faultOf({ entry: { sha256: Buffer.alloc(32) }, heldAgainst: "check" })).toBe("none");
  expect(faultOf({ flippedAt: 5, heldAgainst: "check" })).toMatchObject({ index: FIRST });
});
