import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { ImageResolver } from "../../../src/backends/gvisor/root-filesystem/resolve-image.ts";
import { temporaryFolder } from "../../../../../test/kit/temporary-folder.ts";

async function openResolver(): Promise<{ resolver: ImageResolver; images: string }> {
  const folder = await temporaryFolder();
  const images = join(folder, "images");
  await mkdir(images);
  await mkdir(join(folder, "secrets:1"));
  const cacheDirectory = join(folder, "cache");
  return { images, resolver: new ImageResolver({ cacheDirectory, trustedImages: [], imageDirectories: [images] }) };
}

test.each(["dir:IMAGES/../secrets:1", "dir:IMAGES/none/../../secrets:1", "oci:IMAGES/none/../../layout:tag"])(
  "a path that leads out of the image folder is refused: %s",
  async (name) => {
    const { resolver, images } = await openResolver();
    await expect(resolver.resolve(name.replace("IMAGES", images))).rejects.toMatchObject({ code: "permission_denied" });
  },
);

test.each(["constructor:x", "valueOf:x", "nothing:x", "dir:"])("%s is not an image", async (name) => {
  const { resolver } = await openResolver();
  await expect(resolver.resolve(name)).rejects.toMatchObject({ code: "bad_request" });
});

test("image names that were not used recently are forgotten", async () => {
  const { resolver, images } = await openResolver();
  await mkdir(join(images, "one"));
  // All of them name the same folder.
  const name = (number: number): string => `dir:${images}/${"./".repeat(number)}one`;
  const first = resolver.resolve(name(0));
  const used = resolver.resolve(name(1));
  for (let number = 2; number < 300; number++) {
    await resolver.resolve(name(number));
    expect(resolver.resolve(name(1))).toBe(used);
  }
  expect(resolver.resolve(name(299))).toBe(resolver.resolve(name(299)));
  expect(resolver.resolve(name(0))).not.toBe(first);
  expect(await resolver.resolve(name(0))).toMatchObject({ identity: (await first).identity });
});
