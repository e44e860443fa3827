import { copyFile, cp, mkdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, it } from "vitest";
import { CheckpointRepository } from "../../src/checkpoints/checkpoint-repository.ts";
import { ImageStore } from "../../src/checkpoints/image-store.ts";
import { decodeName, decodeSnapshot, encodeCell } from "../../src/checkpoints/snapshot-record.ts";
import { decodeRecord, encodeHead } from "../../src/lease/head-codec.ts";
import { decodeRecord as decodeLiveness } from "../../src/lease/liveness-record.ts";
import { DirectoryStore } from "../../src/store/directory/directory-store.ts";
import { systemClock } from "../../src/support/clock.ts";
import { temporaryFolder } from "../../../../test/kit/temporary-folder.ts";
import { packsOfImage } from "../../src/checkpoints/open-image.ts";
import {
  FIXTURE_KEYS,
  fixtureStates,
  OWNED_KEY,
  ownedState,
  OWNER,
  writeLife,
  writeOwned,
} from "./block-image/fixture-life.ts";
import { FIXTURE_LABEL, writeFixtureState } from "./fixture-state.ts";
import { packPlainImage } from "./plain-images.ts";
import { contentsOf } from "./saved-states.ts";

/**
 * These files were written by release 0.1 and are never changed. When a test here fails, stored data of users would be
 * lost: mend the code, not the fixture. A new format gets a new fixture beside them.
 */
const FIXTURES = join(import.meta.dirname, "fixtures");
const ENVELOPE_SHA256 = [
  "0094cd4c63d959802075dea20813491c247ea3418d60a2b41a273afd4e127ea5",
  "5728f4b22e0dee469ebee0c71c4b2a7084a2bc20be2aab3249f092899c227234",
  "b5ea28f80855fcd97b0f9bad06a467c8714939d775273cd512ff3e819c19454e",
];
const MANIFEST_SHA256 = "aa689c24e6aad3b1ffe02b4d687743734007994d33687066fe08e9dd753f98ab";

it("reads the image of format 1 unchanged, with its digest", async () => {
  const root = await temporaryFolder();
  const folder = join(root, FIXTURE_LABEL.sandboxId, "checkpoints");
  await mkdir(folder, { recursive: true });
  await copyFile(join(FIXTURES, "image-format-1.img"), join(folder, "checkpoint_1794722400000.img"));
  const repository = new CheckpointRepository(await DirectoryStore.open(root));
  const loaded = await repository.load(
    FIXTURE_LABEL.sandboxId,
    "checkpoint_1794722400000.img",
    await temporaryFolder(),
    { sha256: MANIFEST_SHA256 },
  );
  const state = await writeFixtureState(await temporaryFolder());
  expect(await contentsOf(loaded)).toEqual(await contentsOf(state));
  expect(loaded).toMatchObject({ kind: state.kind, requirements: state.requirements });
});

it("verifies, scrubs and takes over the image of format 1", async () => {
  const from = await DirectoryStore.open(await temporaryFolder());
  const key = `${FIXTURE_LABEL.sandboxId}/checkpoints/checkpoint_1794722400000.img`;
  await from.write(key, [await readFile(join(FIXTURES, "image-format-1.img"))]);
  const store = await DirectoryStore.open(await temporaryFolder());
  const images = new ImageStore(store);
  expect(await images.adopt(from, key, [key], "sandbox:1")).toMatchObject({ key, sha256: MANIFEST_SHA256 });
  await images.verify(await images.open(key));
  const { images: looked, problems } = await images.scrub({ clock: systemClock }).run(async () => new Map());
  expect([looked.whole, problems.size]).toEqual([1, 0]);
});

it("packs the image of format 1 for other tests byte for byte", async () => {
  const packed = await packPlainImage(await writeFixtureState(await temporaryFolder()), FIXTURE_LABEL);
  expect(packed.equals(await readFile(join(FIXTURES, "image-format-1.img")))).toBe(true);
});

it.each(["that were frozen", "of now"])(
  "reads images of format 2 %s, with their packs, as they were saved",
  async (which) => {
    const root = await temporaryFolder();
    const isFrozen = which === "that were frozen";
    if (isFrozen) await cp(join(FIXTURES, "images-format-2"), root, { recursive: true });
    const images = new ImageStore(await DirectoryStore.open(root));
    const digests = isFrozen ? ENVELOPE_SHA256 : await writeLife(images);
    for (const [index, members] of fixtureStates().entries()) {
      const image = await images.open(FIXTURE_KEYS[index] ?? "");
      expect(image.manifestSha256).toBe(digests[index]);
      const parent = FIXTURE_KEYS[index - 1] ?? null;
      expect(image.manifest).toMatchObject({ sandbox_id: "life", kind: "fake-state", parent });
      const { members: loaded } = await images.unpack(image, await temporaryFolder());
      for (const { name, path } of loaded)
        expect((await readFile(path)).equals(members[name] ?? Buffer.alloc(0))).toBe(true);
      expect(loaded.map(({ name }) => name)).toEqual(Object.keys(members));
    }
  },
);

it.each(["that was frozen", "of now"])("reads an image of format 3 %s, whose packs have an owner", async (which) => {
  const root = await temporaryFolder();
  if (which === "that was frozen") await cp(join(FIXTURES, "images-format-3"), root, { recursive: true });
  const store = await DirectoryStore.open(root);
  const images = new ImageStore(store);
  if (which === "of now") await writeOwned(images);
  const image = await images.open(OWNED_KEY);
  expect(image.format).toBe(3);
  expect(await packsOfImage(store, OWNED_KEY)).toEqual([
    expect.stringMatching(new RegExp(`^${OWNER}\\.[0-9a-f-]{36}-0$`)),
  ]);
  const { members } = await images.unpack(image, await temporaryFolder());
  for (const { name, path } of members)
    expect((await readFile(path)).equals(ownedState()[name] ?? Buffer.alloc(0))).toBe(true);
  expect(members).toHaveLength(1);
});

it("reads a head of format 1, and keeps its unknown fields", async () => {
  const text = await readFile(join(FIXTURES, "head-format-1.json"), "utf8");
  const record = decodeRecord(FIXTURE_LABEL.sandboxId, Buffer.from(text));
  if (!("head" in record)) throw new Error("The fixture was not read as a head.");
  expect(record.head).toMatchObject({
    epoch: 7,
    owner: null,
    state: "parked",
    status: "checkpointed",
    checkpoint: { name: "checkpoint_1794722400000.img", sha256: MANIFEST_SHA256 },
  });
  expect(JSON.parse(Buffer.from(encodeHead(record.head)).toString())).toEqual(JSON.parse(text));
});

it("reads instance records of format 1", async () => {
  const live = await readFile(join(FIXTURES, "instance-format-1.json"));
  expect(decodeLiveness(live)).toMatchObject({ url: "http://10.0.0.5:8080", beat: 17, ttl_ms: 15_000 });
  const dead = await readFile(join(FIXTURES, "instance-dead-format-1.json"));
  expect(decodeLiveness(dead)).toMatchObject({ dead: true, by: "0d3f5e2c-1111-4222-8333-444455556666" });
});

it("reads records of snapshots and names of format 1, and keeps their unknown fields", async () => {
  const text = await readFile(join(FIXTURES, "snapshot-format-1.json"), "utf8");
  const snapshot = decodeSnapshot("3f0f3a56-6f0e-4a8e-9d3c-0b8a2f6f7c11", Buffer.from(text));
  expect(snapshot).toMatchObject({ state: "ready", name: "base", mode: "full", image_sha256: MANIFEST_SHA256 });
  expect(JSON.parse(Buffer.from(encodeCell(snapshot)).toString())).toEqual(JSON.parse(text));
  const nameText = await readFile(join(FIXTURES, "snapshot-name-format-1.json"), "utf8");
  const name = decodeName("base", Buffer.from(nameText));
  expect(name.snapshot_id).toBe(snapshot.id);
  expect(JSON.parse(Buffer.from(encodeCell(name)).toString())).toEqual(JSON.parse(nameText));
  const later = Buffer.from(text.replace('"format": 1', '"format": 2'));
  expect(() => decodeSnapshot(snapshot.id, later)).toThrow("cannot be read");
});
