import { randomBytes } from "node:crypto";
import { readdir, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { SavedImage } from "../../../src/checkpoints/image-store.ts";
import { PackCache } from "../../../src/checkpoints/packs/pack-cache.ts";
import { temporaryFolder } from "../../../../../test/kit/temporary-folder.ts";
import { asText, BLOCK, openLab, PAGE, withNewPages } from "./block-images.ts";

const LARGE = 24 * BLOCK;

describe("packs of a remote store", () => {
  it("are cached when they are uploaded, so that the next save can be a difference to them", async () => {
    const folder = await temporaryFolder();
    const lab = await openLab({ remote: true, cache: new PackCache(folder, 1024 ** 3) });
    const memory = randomBytes(LARGE);
    const first = await lab.save({ memory });
    expect((await readdir(folder)).map((name) => `${name}.pack`)).toEqual(await lab.packs());
    const changed = withNewPages(memory, [3, 700]);
    const second = await lab.save({ memory: changed }, first);
    expect(second.addedBytes).toBeLessThan(6 * PAGE);
    expect(await lab.load(second)).toEqual(asText({ memory: changed }));
  });

  it("are fetched for a load, and stay below the limit afterwards", async () => {
    const folder = await temporaryFolder();
    const lab = await openLab({ remote: true, cache: new PackCache(folder, LARGE + BLOCK) });
    const memories = [randomBytes(LARGE), randomBytes(LARGE)];
    const images = [];
    for (const memory of memories) images.push(await lab.save({ memory }));
    expect(await readdir(folder)).toHaveLength(1);
    for (const [index, image] of images.entries()) {
      expect(await lab.load(image)).toEqual(asText({ memory: memories[index] ?? Buffer.alloc(0) }));
      expect(await readdir(folder)).toHaveLength(1);
    }
  });

  it("are cached during a load only as far as there is room, except those in flight", async () => {
    const folder = await temporaryFolder();
    const packBytes = 4 * BLOCK;
    const limitBytes = 2.5 * packBytes;
    const lab = await openLab({ remote: true, cache: new PackCache(folder, limitBytes) });
    const members: Record<string, Buffer> = {};
    let image: SavedImage | undefined;
    for (let count = 0; count < 12; count++) {
      members[`part-${count}`] = randomBytes(packBytes);
      image = await lab.save(members, image);
    }
    expect(await lab.packs()).toHaveLength(12);
    if (image === undefined) throw new Error("There is no image.");
    // A member that depends on blocks of most of the others.
    members["part-3"] = withNewPages(members["part-3"] ?? Buffer.alloc(0), [1, 100, 200]);
    members["part-9"] = withNewPages(members["part-9"] ?? Buffer.alloc(0), [2]);
    image = await lab.save(members, image);
    await rm(folder, { recursive: true });
    let mostBytes = 0;
    const look = async (): Promise<void> => {
      const names = await readdir(folder).catch(() => []);
      const sizes = await Promise.all(
        names.map(async (name) => (await stat(join(folder, name)).catch(() => undefined))?.size ?? 0),
      );
      mostBytes = Math.max(
        mostBytes,
        sizes.reduce((sum, size) => sum + size, 0),
      );
    };
    const { store } = lab;
    const read = store.read.bind(store);
    let fetched = 0;
    store.read = async function* (key, options) {
      await look();
      if (key.startsWith("packs/")) fetched += 1;
      yield* read(key, options);
      await look();
    };
    expect(await lab.load(image)).toEqual(asText(members));
    await look();
    expect(fetched).toBeGreaterThanOrEqual(12);
    expect(fetched).toBeLessThan(20);
    // Four are in flight at the same time.
    expect(mostBytes).toBeLessThanOrEqual(limitBytes + 4 * (packBytes + PAGE));
    expect(mostBytes).toBeGreaterThan(packBytes);
  });

  it("arrive for one load although another that waited for them too was cancelled", async () => {
    const folder = await temporaryFolder();
    const lab = await openLab({ remote: true, cache: new PackCache(folder, 1024 ** 3) });
    const memory = randomBytes(LARGE);
    const image = await lab.save({ memory });
    await rm(folder, { recursive: true });
    const controller = new AbortController();
    const { store } = lab;
    const read = store.read.bind(store);
    store.read = async function* (key, options) {
      if (key.startsWith("packs/")) controller.abort(new Error("called off"));
      yield* read(key, options);
    };
    const into = await temporaryFolder();
    const first = lab.images.unpack(await lab.images.open(image.key), into, { signal: controller.signal });
    const [calledOff, loaded] = await Promise.allSettled([first, lab.load(image)]);
    expect(calledOff).toMatchObject({ status: "rejected", reason: { message: "called off" } });
    expect(loaded).toEqual({ status: "fulfilled", value: asText({ memory }) });
  });

  it("are not needed for a save: blocks without a local base are written in full", async () => {
    const folder = await temporaryFolder();
    const lab = await openLab({ remote: true, cache: new PackCache(folder, 1024 ** 3) });
    const memory = randomBytes(LARGE);
    const first = await lab.save({ memory });
    await rm(folder, { recursive: true });
    const changed = withNewPages(memory, [3]);
    const second = await lab.save({ memory: changed }, first);
    expect(second.addedBytes).toBeGreaterThan(BLOCK - PAGE);
    expect(second.addedBytes).toBeLessThan(2 * BLOCK);
    expect(await lab.load(second)).toEqual(asText({ memory: changed }));
  });
});

describe("a save that fails", () => {
  it("leaves no pack and no pin", async () => {
    const lab = await openLab();
    const aborted = AbortSignal.abort(new Error("called off"));
    const { stateOf } = await import("./block-images.ts");
    const state = await stateOf({ memory: randomBytes(LARGE) });
    const label = { sandboxId: "sandbox", createdAt: "", parent: null };
    let seen = 0;
    const controller = new AbortController();
    const options = {
      signal: controller.signal,
      onProgress: () => void (++seen === 3 && controller.abort(aborted.reason)),
    };
    await expect(lab.images.save(["sandbox/x.img"], state, label, options)).rejects.toThrow("called off");
    expect(seen).toBeGreaterThanOrEqual(3);
    expect(await lab.packs()).toEqual([]);
    expect(await Array.fromAsync(lab.store.list("pins"))).toEqual([]);
    expect(await lab.store.stat("sandbox/x.img")).toBeUndefined();
  });

  it("that cannot be read back leaves no image without its packs", async () => {
    const lab = await openLab();
    const read = lab.store.read.bind(lab.store);
    let failures = 1;
    lab.store.read = (key, options) => {
      if (key.endsWith(".img") && failures-- > 0) throw new Error("away for a moment");
      return read(key, options);
    };
    await expect(lab.save({ memory: randomBytes(LARGE) })).rejects.toThrow("away for a moment");
    expect(await Array.fromAsync(lab.store.list(""), ({ key }) => key)).toEqual([]);
  });

  it("that reads back differently fails", async () => {
    const lab = await openLab();
    const { store } = lab;
    const read = store.read.bind(store);
    const memory = randomBytes(LARGE);
    store.read = (key, options) => (key.startsWith("packs/") ? zeros(key) : read(key, options));
    await expect(lab.save({ memory })).rejects.toMatchObject({
      code: "checkpoint_failed",
      message: expect.stringContaining("reads back differently") as unknown,
    });
    async function* zeros(key: string): AsyncGenerator<Uint8Array> {
      for await (const chunk of read(key)) yield new Uint8Array(chunk.byteLength);
    }
  });
});
