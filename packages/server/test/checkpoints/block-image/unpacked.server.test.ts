import { randomBytes } from "node:crypto";
import { readdir, rm, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { UnpackedImages } from "../../../src/checkpoints/unpacked-images.ts";
import { temporaryFolder } from "../../../../../test/kit/temporary-folder.ts";
import { asText, BLOCK, openLab } from "./block-images.ts";

const LARGE = 12 * BLOCK;

describe("an image that is unpacked on this machine", () => {
  it("is loaded from there after a save, without reading a pack", async () => {
    const lab = await openLab({ unpacked: new UnpackedImages(await temporaryFolder(), 10 * LARGE) });
    const members = {
      memory: Buffer.concat([randomBytes(LARGE), Buffer.alloc(BLOCK)]),
      "in/config.json": Buffer.from("{}"),
    };
    const image = await lab.save(members);
    await rm(join(lab.root, "packs"), { recursive: true });
    expect(await lab.load(image)).toEqual(asText(members));
  });

  it("is kept when it was unpacked once", async () => {
    const folder = await temporaryFolder();
    const memory = randomBytes(LARGE);
    const lab = await openLab({ unpacked: new UnpackedImages(folder, 10 * LARGE) });
    const image = await lab.save({ memory });
    await rm(join(folder, image.sha256), { recursive: true });
    await lab.load(image);
    await rm(join(lab.root, "packs"), { recursive: true });
    expect(await lab.load(image)).toEqual(asText({ memory }));
  });

  it.each(["memory", "zeros"])("is compared with the image, and unpacked again when its %s differ", async (what) => {
    const folder = await temporaryFolder();
    const lab = await openLab({ unpacked: new UnpackedImages(folder, 10 * LARGE) });
    const members = { memory: randomBytes(LARGE), zeros: Buffer.alloc(BLOCK) };
    const image = await lab.save(members);
    const damaged = Buffer.from(members[what as "memory" | "zeros"]);
    damaged[BLOCK - 1] = (damaged[BLOCK - 1] ?? 0) ^ 1;
    await writeFile(join(folder, image.sha256, what), damaged);
    expect(await lab.load(image)).toEqual(asText(members));
  });

  it.each([-1, 11])("is unpacked again when it is %i bytes longer", async (more) => {
    const folder = await temporaryFolder();
    const lab = await openLab({ unpacked: new UnpackedImages(folder, 10 * LARGE) });
    const memory = randomBytes(LARGE);
    const image = await lab.save({ memory });
    await truncate(join(folder, image.sha256, "memory"), LARGE + more);
    expect(await lab.load(image)).toEqual(asText({ memory }));
  });

  it("can be used while it is compared with the image, and its users learn the result", async () => {
    const folder = await temporaryFolder();
    const lab = await openLab({ unpacked: new UnpackedImages(folder, 10 * LARGE) });
    const image = await lab.save({ memory: randomBytes(LARGE) });
    const beside = async () =>
      await lab.images.unpack(await lab.images.open(image.key), await temporaryFolder(), { verifyBeside: true });
    await (
      await beside()
    ).verified;
    await writeFile(join(folder, image.sha256, "memory"), randomBytes(LARGE));
    await expect((await beside()).verified).rejects.toMatchObject({
      code: "image_damaged",
      message: expect.stringContaining("its copy on this machine differs") as unknown,
    });
    // It was forgotten, so the next one is from the store.
    await (
      await beside()
    ).verified;
  });

  it("is removed when others need the space, and is not kept if it would need all of it", async () => {
    const folder = await temporaryFolder();
    const lab = await openLab({ unpacked: new UnpackedImages(folder, 2 * LARGE + BLOCK) });
    const images = [];
    for (let count = 0; count < 3; count++) images.push(await lab.save({ memory: randomBytes(LARGE) }));
    expect((await readdir(folder)).toSorted()).toEqual(
      images
        .slice(1)
        .map(({ sha256 }) => sha256)
        .toSorted(),
    );
    const large = await lab.save({ memory: randomBytes(3 * LARGE) });
    expect(await readdir(folder)).not.toContain(large.sha256);
  });
});
