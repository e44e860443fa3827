import { lstat, readdir, readFile, readlink, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Readable } from "node:stream";
import { gzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { temporaryFolder } from "../../../../test/kit/temporary-folder.ts";
import { tarHeader } from "../../src/support/tar-header.ts";
import { DEFAULT_LIMITS, type ImageLimits } from "../../src/images/image-limits.ts";
import { cleanTar } from "../../src/images/layers/clean-tar.ts";
import { stackLayers } from "../../src/images/layers/stack-layers.ts";
import { UnpackMeter, unpackLayer } from "../../src/images/layers/unpack-layer.ts";
import { madeLayer, packedLayer, tarOf, type MadeEntry, type MadeLayer } from "./support/made-image.ts";

/** Unpacks and stacks layers, lowest first; returns the folder. `outside` lies beside everything. */
async function unpacked(
  layers: readonly (readonly MadeEntry[] | MadeLayer)[],
  limits: Partial<ImageLimits> = {},
): Promise<{ readonly root: string; readonly outside: string; readonly folder: string }> {
  const folder = await temporaryFolder();
  const outside = join(folder, "outside");
  await writeFile(outside, "untouched");
  const meter = new UnpackMeter({ ...DEFAULT_LIMITS, ...limits });
  const done = [];
  for (const [index, given] of layers.entries()) {
    const layer = "diffId" in given ? given : await madeLayer(given, "none");
    const path = join(folder, `packed-${index}`);
    await writeFile(path, layer.bytes);
    const into = join(folder, `layer-${index}`);
    const record = await unpackLayer({ path, sizeBytes: layer.bytes.length, diffId: layer.diffId, into }, meter);
    done.push({ folder: into, record });
  }
  const root = join(folder, "root");
  await stackLayers(done, root);
  return { root, outside, folder };
}

/** Something that must fail; nothing but the packed layers and the file outside is left. */
async function expectRefused(work: Promise<unknown>, why: RegExp): Promise<void> {
  await expect(work).rejects.toThrow(why);
}

describe("a layer cannot reach outside its folder", () => {
  it.each(["../outside", "../../outside", "/outside", "a/../../outside", "./../outside"])(
    "by the name %s",
    async (name) => {
      const { root, outside } = await unpacked([[{ name, content: "changed" }]]);
      expect(await readFile(outside, "utf8")).toBe("untouched");
      expect(await readFile(join(root, "outside"), "utf8")).toBe("changed");
    },
  );

  it.each(["/", "..", "../..", "/proc/self/cwd/.."])("through a link to %s in the same layer", async (linkname) => {
    const { outside } = await unpacked([
      [
        { name: "way", type: "symlink", linkname },
        { name: "way/outside", content: "changed" },
      ],
    ]);
    expect(await readFile(outside, "utf8")).toBe("untouched");
  });

  it("through a link in a lower layer", async () => {
    const folder = await temporaryFolder();
    await writeFile(join(folder, "victim"), "untouched");
    const { root } = await unpacked([
      [
        { name: "way", type: "symlink", linkname: folder },
        { name: "file", type: "symlink", linkname: join(folder, "victim") },
      ],
      [
        { name: "way/.wh.victim" },
        { name: "way/.wh..wh..opq" },
        { name: "way/new", content: "x" },
        { name: "file", content: "changed" },
      ],
    ]);
    expect(await readdir(folder)).toEqual(["victim"]);
    expect(await readFile(join(folder, "victim"), "utf8")).toBe("untouched");
    expect((await lstat(join(root, "way"))).isDirectory()).toBe(true);
    expect(await readFile(join(root, "file"), "utf8")).toBe("changed");
  });

  it("by a hard link", async () => {
    const folder = await temporaryFolder();
    await writeFile(join(folder, "victim"), "untouched");
    for (const linkname of ["../outside", join(folder, "victim"), "nowhere", "", "../packed-0"]) {
      await expectRefused(unpacked([[{ name: "link", type: "link", linkname }]]), /hard link/);
    }
    const way: MadeEntry = { name: "way", type: "symlink", linkname: folder };
    await expectRefused(unpacked([[way, { name: "link", type: "link", linkname: "way/victim" }]]), /hard link/);
    expect((await stat(join(folder, "victim"))).nlink).toBe(1);
  });

  it("by whiteouts", async () => {
    const { outside, root } = await unpacked([
      [{ name: "kept", content: "x" }],
      [{ name: "../.wh.outside" }, { name: ".wh..." }, { name: ".wh.." }, { name: ".wh." }, { name: "a/b/.wh.c" }],
    ]);
    expect(await readFile(outside, "utf8")).toBe("untouched");
    expect(await readdir(root)).toContain("kept");
  });

  it("by links where sandboxes have mounts", async () => {
    const { root } = await unpacked([
      [".sandboxer", "proc", "dev", "tmp"].map((name) => ({ name, type: "symlink" as const, linkname: "/etc" })),
    ]);
    for (const name of [".sandboxer", "proc", "dev", "tmp"]) {
      expect((await lstat(join(root, name))).isDirectory()).toBe(true);
    }
  });
});

describe("a layer's odd entries", () => {
  it("devices and pipes are dropped", async () => {
    const { root } = await unpacked([
      [
        { name: "disk", type: "block-device" },
        { name: "null", type: "character-device" },
        { name: "pipe", type: "fifo" },
        { name: "kept", content: "x" },
      ],
    ]);
    expect((await readdir(root)).filter((name) => ["disk", "null", "pipe", "kept"].includes(name))).toEqual(["kept"]);
  });

  it("links that lead in circles are refused", async () => {
    const circle: MadeEntry[] = [
      { name: "a", type: "symlink", linkname: "b" },
      { name: "b", type: "symlink", linkname: "a" },
      { name: "a/file", content: "x" },
    ];
    await expectRefused(unpacked([circle]), /circles/);
  });

  it("a name that is a file and a folder is refused", async () => {
    await expectRefused(unpacked([[{ name: "a" }, { name: "a/b" }]]), /a file and a folder/);
    const folderFirst: MadeEntry[] = [{ name: "a", type: "directory" }, { name: "a/b" }, { name: "a", content: "x" }];
    await expectRefused(unpacked([folderFirst]), /a folder and something else/);
  });

  it("a later entry replaces an earlier one, except a link", async () => {
    const { root } = await unpacked([
      [
        { name: "c", content: "old" },
        { name: "c", content: "new" },
        { name: "d", content: "old" },
        { name: "d", type: "symlink", linkname: "c" },
      ],
    ]);
    expect(await readFile(join(root, "c"), "utf8")).toBe("new");
    expect(await readlink(join(root, "d"))).toBe("c");
    const linkFirst: MadeEntry[] = [
      { name: "a", type: "symlink", linkname: "/etc" },
      { name: "a", type: "directory" },
    ];
    await expectRefused(unpacked([linkFirst]), /a link and something else/);
  });

  it("names need not be UTF-8, and may be long", async () => {
    const odd = tarHeader({
      kind: "file",
      name: Buffer.from([0x61, 0xff, 0xfe]),
      mode: 0o644,
      uid: 0,
      gid: 0,
      sizeBytes: 0,
      modifiedMs: 0,
    });
    const { root } = await unpacked([
      packedLayer(Buffer.concat([odd, Buffer.alloc(1024)])),
      [{ name: `${"long/".repeat(100)}nàme`, content: "x" }],
    ]);
    expect(await readdir(root, { encoding: "buffer" })).toContainEqual(Buffer.from([0x61, 0xff, 0xfe]));
    expect(await readFile(join(root, "long/".repeat(100), "nàme"), "utf8")).toBe("x");
    await expectRefused(unpacked([[{ name: "n".repeat(300) }]]), /too long/);
    await expectRefused(unpacked([[{ name: "n/".repeat(2000) }]]), /too long/);
  });

  it("an archive that ends right after its last byte is complete", async () => {
    const whole = await tarOf([{ name: "a", content: "xyz" }]);
    const { root } = await unpacked([packedLayer(whole.subarray(0, 512 + 3))]);
    expect(await readFile(join(root, "a"), "utf8")).toBe("xyz");
  });

  it("only harmless attributes are kept", async () => {
    const notes = { whiteouts: [], opaque: [], implicit: [] };
    const pax = { "SCHILY.xattr.trusted.overlay.redirect": "/", "SCHILY.xattr.user.note": "kept" };
    const source = Readable.from([await tarOf([{ name: "a", content: "x", pax }])]);
    const out = Buffer.concat(await Array.fromAsync(cleanTar(source, notes, () => {}))).toString("latin1");
    expect(out).toContain("SCHILY.xattr.user.note=kept");
    expect(out).not.toContain("trusted");
  });

  it("set-user-ID bits and owners are kept as far as this user may", async () => {
    const { root } = await unpacked([[{ name: "sudo", mode: 0o4755, content: "x" }]]);
    expect((await stat(join(root, "sudo"))).mode & 0o7777).toBe(0o4755);
  });
});

describe("a layer that asks for too much", () => {
  it("is refused early if it is 10 GB of zeros", async () => {
    // Members of a gzip file may follow one another, so that few bytes become many.
    const member = gzipSync(Buffer.alloc(1 << 20));
    const bomb = {
      diffId: `sha256:${"0".repeat(64)}`,
      bytes: Buffer.concat(Array.from({ length: 200 }, () => member)),
    };
    const header = tarHeader({
      kind: "file",
      name: Buffer.from("zeros"),
      mode: 0o644,
      uid: 0,
      gid: 0,
      sizeBytes: 10e9,
      modifiedMs: 0,
    });
    const layer = { ...bomb, bytes: Buffer.concat([gzipSync(header), bomb.bytes]) };
    const limits = { freeBytes: 1 << 20 };
    const began = process.memoryUsage.rss();
    await expectRefused(unpacked([layer], limits), /unpacks to more than 200 times as much/);
    expect(process.memoryUsage.rss() - began).toBeLessThan(200 << 20);
  });

  it("is refused if all layers together are too large", async () => {
    const layer = [{ name: "data", content: Buffer.alloc(60_000, 7) }];
    await unpacked([layer], { unpackedBytes: 100_000 });
    await expectRefused(
      unpacked([layer, [{ name: "more", content: Buffer.alloc(60_000, 8) }]], { unpackedBytes: 100_000 }),
      /more than 100000 bytes/,
    );
  });

  it("is refused early if it has a million entries", async () => {
    let made = 0;
    function* million(): Generator<Buffer> {
      for (; made < 1_000_000; made++) {
        yield tarHeader({
          kind: "folder",
          name: Buffer.from(`d${made}/`),
          mode: 0o755,
          uid: 0,
          gid: 0,
          sizeBytes: 0,
          modifiedMs: 0,
        });
      }
    }
    const meter = new UnpackMeter({ ...DEFAULT_LIMITS, entries: 5_000 });
    const notes = { whiteouts: [], opaque: [], implicit: [] };
    const reading = async (): Promise<void> => {
      for await (const _ of cleanTar(Readable.from(million()), notes, () => meter.count(0, 1))) void _;
    };
    await expectRefused(reading(), /more than 5000 files/);
    expect(made).toBeLessThan(20_000);
  });

  it.each([
    ["no tar", Buffer.alloc(2048, "x")],
    ["a cut tar", Buffer.alloc(0)],
  ])("is refused if it is %s", async (what, bytes) => {
    const whole = await tarOf([{ name: "a", content: Buffer.alloc(5000) }]);
    const layer = packedLayer(what === "a cut tar" ? whole.subarray(0, 2000) : bytes);
    await expect(unpacked([layer])).rejects.toThrow();
  });

  it("is refused if its compression is damaged", async () => {
    const { diffId, bytes } = await madeLayer([{ name: "a", content: Buffer.alloc(50_000, "abc") }]);
    await expect(unpacked([{ diffId, bytes: bytes.subarray(0, bytes.length - 20) }])).rejects.toThrow();
  });

  it("leaves nothing behind", async () => {
    const folder = await temporaryFolder();
    const { bytes } = await madeLayer([{ name: "a", content: "x" }]);
    await writeFile(join(folder, "packed"), bytes);
    const layer = {
      path: join(folder, "packed"),
      sizeBytes: bytes.length,
      diffId: "sha256:other",
      into: join(folder, "layer"),
    };
    await expect(unpackLayer(layer, new UnpackMeter(DEFAULT_LIMITS))).rejects.toThrow(/has the content/);
    expect(await readdir(folder)).toEqual(["packed"]);
  });
});
