import { describe, expect, it } from "vitest";
import { rotateDataKeys } from "../../../src/checkpoints/keys/rotate-data-keys.ts";
import { StoredDataKeys } from "../../../src/checkpoints/keys/stored-data-keys.ts";
import { MemoryStore } from "../../collection/memory-store.ts";
import { collect } from "../../store/store-contract.ts";
import { newId, newKey, serverKeys } from "./key-lab.ts";
import { endingAt, interruptedAt } from "./stores-that-end.ts";

/** Two rotations to different keys: of those that come from the same, one after the other, and there and back. */
const PAIRS = [
  { first: ["new", "old"], second: ["newer", "old"] },
  { first: ["new", "old"], second: ["newer", "new", "old"] },
  { first: ["new", "newer", "old"], second: ["newer", "new", "old"] },
  { first: ["new", "old"], second: ["old", "new"] },
] as const;
const STEPS = Array.from({ length: 20 }, (_, index) => index + 1);
/** Changes of the store that a rotation of one data key makes before it is killed; none of them makes more. */
const CHANGES = Array.from({ length: 7 }, (_, index) => index);
const ALL = Number.POSITIVE_INFINITY;
const KILLED = [...CHANGES.map((changes) => [changes, ALL]), ...CHANGES.map((changes) => [ALL, changes])] as const;

async function endsOrIsKilled(rotation: Promise<unknown>): Promise<void> {
  await rotation.catch((error: unknown) => {
    if (!(error instanceof Error) || error.message !== "killed") throw error;
  });
}

async function openLab() {
  const store = new MemoryStore();
  const keys = new Map(["old", "new", "newer"].map((name) => [name, newKey()]));
  const written = await new StoredDataKeys(store, serverKeys(keys, "old")).forWriting({}, newId(), undefined);
  if (written === undefined) throw new Error("There is no data key.");
  return { store, keys, id: written.id, bytes: Buffer.from(written.bytes) };
}

describe("of two rotations to different keys, one of which is killed", () => {
  it.each(PAIRS.flatMap((pair) => STEPS.map((step) => ({ ...pair, step }))))(
    "a key stays that opens: to $first, and at its step $step to $second",
    async ({ first: [present, ...before], second: [other, ...otherBefore], step }) => {
      for (const [lastOfFirst = ALL, lastOfSecond = ALL] of KILLED) {
        const { store, keys, id, bytes } = await openLab();
        const all = new StoredDataKeys(store, serverKeys(keys, "old", ["new", "newer"]));
        const second = serverKeys(keys, other, otherBefore);
        const meanwhile = async (): Promise<void> =>
          await endsOrIsKilled(rotateDataKeys(endingAt(store, lastOfSecond), second, { apply: true }));
        const interrupted = endingAt(interruptedAt(store, step, meanwhile), lastOfFirst);
        await endsOrIsKilled(rotateDataKeys(interrupted, serverKeys(keys, present, before), { apply: true }));
        expect(Buffer.from(await all.open(id))).toEqual(bytes);
        // The next one that knows all keys ends it: one key opens it, and nothing else is there.
        await rotateDataKeys(store, serverKeys(keys, "newer", ["new", "old"]), { apply: true });
        const newer = new Map([...keys].filter(([name]) => name === "newer"));
        expect(Buffer.from(await new StoredDataKeys(store, serverKeys(newer, "newer")).open(id))).toEqual(bytes);
        expect((await collect(store.list(`data-keys/${id}`))).map(({ key }) => key)).toHaveLength(1);
      }
    },
  );
});
