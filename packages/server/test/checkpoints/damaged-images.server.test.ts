import { randomUUID } from "node:crypto";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { expect, it } from "vitest";
import { CheckpointRepository } from "../../src/checkpoints/checkpoint-repository.ts";
import { encodeFooter, sha256Of } from "../../src/checkpoints/image-format.ts";
import { DirectoryStore } from "../../src/store/directory/directory-store.ts";
import { temporaryFolder } from "../../../../test/kit/temporary-folder.ts";
import { FIXTURE_LABEL } from "./fixture-state.ts";
import { packPlainImage } from "./plain-images.ts";
import { savedState } from "./saved-states.ts";

interface Fixture {
  readonly good: Buffer;
  /** Tries to load the image with other bytes; undefined when it loads. */
  readonly tryWith: (bytes: Uint8Array) => Promise<{ code?: string; message: string } | undefined>;
}

async function fixture(sizes: Readonly<Record<string, number>>): Promise<Fixture> {
  const root = await temporaryFolder();
  const scratch = await temporaryFolder();
  const repository = new CheckpointRepository(await DirectoryStore.open(root));
  const [id, name] = [randomUUID(), "checkpoint_1.img"];
  const path = join(root, id, "checkpoints", name);
  await mkdir(dirname(path), { recursive: true });
  return {
    good: await packPlainImage(await savedState(sizes), { ...FIXTURE_LABEL, sandboxId: id }),
    tryWith: async (bytes) => {
      await writeFile(path, bytes);
      const into = await mkdtemp(join(scratch, "into-"));
      try {
        await repository.load(id, name, into);
        return undefined;
      } catch (error) {
        return error as { code?: string; message: string };
      } finally {
        await rm(into, { recursive: true });
      }
    },
  };
}

it("detects single flipped bytes everywhere, including the padding", async () => {
  const { good, tryWith } = await fixture({ one: 300, two: 0, "in/three": 4096, four: 77 });
  expect(await tryWith(good)).toBeUndefined();
  const undetected: number[] = [];
  // One digest covers all bytes of a part: of each part its borders and a sample. Of the header's start and of the footer, where each byte
  // has its own meaning, all.
  const [footer, manifest] = [good.byteLength - 64, Number(good.readBigUInt64LE(good.byteLength - 64))];
  const borders = new Set([4096, 4096 + 300, 8192, 12_288, 12_288 + 77, manifest].flatMap((at) => [at - 1, at]));
  const positions = Array.from({ length: good.byteLength }, (_, at) => at).filter(
    (at) => at < 16 || at >= footer || borders.has(at) || at % (at < manifest ? 499 : 29) === 0,
  );
  for (const at of positions) {
    const bad = Buffer.from(good);
    bad.writeUInt8((good[at] ?? 0) ^ (1 << (at % 8)), at);
    const problem = await tryWith(bad);
    if (problem === undefined) undetected.push(at);
    else
      expect(problem).toMatchObject({
        code: "image_damaged",
        message: expect.stringContaining("checkpoint_1.img") as unknown,
      });
  }
  expect(undetected).toEqual([]);
});

it("detects truncation anywhere, and bytes that were appended or swapped", async () => {
  const { good, tryWith } = await fixture({ one: 10_000, two: 5_000 });
  for (let length = 0; length < good.byteLength; length += 331) {
    expect((await tryWith(good.subarray(0, length)))?.message).toMatch(/truncated at byte/);
  }
  for (let cut = 1; cut <= 70; cut++) {
    expect((await tryWith(good.subarray(0, good.byteLength - cut)))?.code).toBe("image_damaged");
  }
  expect((await tryWith(Buffer.concat([good, Buffer.alloc(1)])))?.code).toBe("image_damaged");
  expect((await tryWith(Buffer.concat([good, good])))?.code).toBe("image_damaged");
  const swapped = Buffer.concat([
    good.subarray(0, 4096),
    good.subarray(8192, 12_288),
    good.subarray(4096, 8192),
    good.subarray(12_288),
  ]);
  expect((await tryWith(swapped))?.message).toMatch(/member "one": its digest differs/);
});

it("says which part is wrong", async () => {
  const { good, tryWith } = await fixture({ one: 100, two: 100 });
  const flip = async (at: number): Promise<string | undefined> => {
    const bad = Buffer.from(good);
    bad.writeUInt8((good[at] ?? 0) ^ 0xff, at);
    return (await tryWith(bad))?.message;
  };
  expect(await flip(0)).toMatch(/bad magic at its start/);
  expect(await flip(4096 + 50)).toMatch(/member "one": its digest differs/);
  expect(await flip(4096 + 200)).toMatch(/member "one": the bytes after it are not zero/);
  expect(await flip(8192)).toMatch(/member "two": its digest differs/);
  expect(await flip(good.byteLength - 64 - 10)).toMatch(/the manifest's digest differs/);
  const future = Buffer.from(good);
  future.writeUInt32LE(9, good.byteLength - 16);
  expect((await tryWith(future))?.message).toMatch(/unknown format version 9/);
  future.writeUInt32LE(1, good.byteLength - 16);
  future.writeUInt32LE(7, 8);
  expect((await tryWith(future))?.message).toMatch(/unknown format version 7/);
});

/** An image whose digests are all right and whose manifest was changed on purpose. */
function forge(good: Buffer, change: (manifest: Record<string, unknown>) => void): Buffer {
  const manifestOffset = Number(good.readBigUInt64LE(good.byteLength - 64));
  const manifest = JSON.parse(good.toString("utf8", manifestOffset, good.byteLength - 64)) as Record<string, unknown>;
  change(manifest);
  const bytes = Buffer.from(JSON.stringify(manifest));
  const footer = encodeFooter({
    format: 1,
    manifestOffset,
    manifestBytes: bytes.byteLength,
    manifestSha256: sha256Of(bytes),
  });
  return Buffer.concat([good.subarray(0, manifestOffset), bytes, footer]);
}

it("refuses a manifest that would write outside, or does not describe the file", async () => {
  const { good, tryWith } = await fixture({ one: 100, two: 100 });
  const withMember = (fields: Record<string, unknown>): Buffer =>
    forge(good, (manifest) => Object.assign((manifest["members"] as object[])[0] ?? {}, fields));
  expect(await tryWith(forge(good, (manifest) => (manifest["unknown_field"] = 1)))).toBeUndefined();
  for (const name of ["../one", "/etc/one", "a/../../one", ".one", ""]) {
    expect((await tryWith(withMember({ name })))?.message).toMatch(/leads outside its folder/);
  }
  expect((await tryWith(withMember({ name: "two" })))?.message).toMatch(/occurs twice/);
  expect((await tryWith(withMember({ offset: 8192 })))?.message).toMatch(/not where its predecessor ends/);
  expect((await tryWith(withMember({ size_bytes: 5000 })))?.code).toBe("image_damaged");
  expect((await tryWith(withMember({ size_bytes: -1 })))?.code).toBe("image_damaged");
  expect((await tryWith(withMember({ size_bytes: 99 })))?.message).toMatch(/its digest differs/);
  expect((await tryWith(forge(good, (manifest) => (manifest["members"] = []))))?.code).toBe("image_damaged");
  expect((await tryWith(forge(good, (manifest) => delete manifest["kind"])))?.message).toMatch(
    /lacks what format 1 requires/,
  );
});
