import { hash } from "node:crypto";
import type { ImageStore } from "../../../src/checkpoints/image-store.ts";
import { BLOCK, PAGE, stateOf } from "./block-images.ts";

export const FIXTURE_KEYS = ["first", "second", "third"].map((name) => `life/${name}.img`);

/** Three states of a life, always the same: with zeros, with what compresses and what does not, with changes and a move. */
export function fixtureStates(): readonly Readonly<Record<string, Uint8Array>>[] {
  const noise = pseudoRandom(2 * BLOCK);
  const text = Buffer.from("what compresses well\n".repeat(20_000));
  const first = {
    "memory.img": Buffer.concat([noise, Buffer.alloc(BLOCK)]),
    "in/notes.txt": text,
    empty: Buffer.alloc(0),
  };
  const changed = Buffer.from(first["memory.img"]);
  changed.fill("changed", 70 * PAGE, 70 * PAGE + 700);
  const second = { ...first, "memory.img": changed };
  const moved = Buffer.concat([pseudoRandom(5 * PAGE, "more"), changed]);
  return [first, second, { ...second, "memory.img": moved, "in/notes.txt": text.subarray(0, 100_001) }];
}

/** Writes the states as images, each against the one before. */
export async function writeLife(images: ImageStore): Promise<readonly string[]> {
  const digests: string[] = [];
  for (const [index, members] of fixtureStates().entries()) {
    const label = { sandboxId: "life", createdAt: "2026-11-15T15:00:00.000Z", parent: FIXTURE_KEYS[index - 1] ?? null };
    const base = FIXTURE_KEYS[index - 1];
    const saved = await images.save([FIXTURE_KEYS[index] ?? ""], await stateOf(members), label, { base });
    digests.push(saved.sha256);
  }
  return digests;
}

export const OWNER = "6f2a6a52-3c5b-4f0e-9a53-0d7f1a4c9b11";
export const OWNED_KEY = `${OWNER}/checkpoints/checkpoint_1794722400000.img`;

/** A little more than what lies in an image itself. */
export function ownedState(): Readonly<Record<string, Uint8Array>> {
  return { "memory.img": pseudoRandom(136 * 1024, "owned") };
}

export async function writeOwned(images: ImageStore): Promise<void> {
  const label = { sandboxId: OWNER, createdAt: "2026-11-16T12:00:00.000Z", parent: null };
  await images.save([OWNED_KEY], await stateOf(ownedState()), label);
}

function pseudoRandom(sizeBytes: number, seed = "noise"): Buffer {
  const parts: Buffer[] = [];
  for (let at = 0; at < sizeBytes; at += 32) parts.push(hash("sha256", `${seed} ${at}`, "buffer"));
  return Buffer.concat(parts, sizeBytes);
}
