import { randomBytes } from "node:crypto";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { DirectoryStore } from "../../src/store/directory/directory-store.ts";
import { bytes, readAll } from "./store-contract.ts";
import { smallVolume } from "../../../../test/kit/small-volume.ts";

it("answers a full volume with no_space, leaves nothing half-written, and continues when there is room", async (context) => {
  const volume = smallVolume(8 * 1024 * 1024);
  if ("skipped" in volume) {
    console.log(`skipped: ${volume.skipped}`);
    return context.skip(volume.skipped);
  }
  try {
    const store = await DirectoryStore.open(volume.folder);
    const old = randomBytes(1024 * 1024);
    await store.write("sandbox/blob", [old]);
    const first = await store.swapCell("sandbox/metadata.json", undefined, bytes("1"));
    const tooMuch = Array.from({ length: 12 }, () => randomBytes(1024 * 1024));

    await expect(store.write("sandbox/blob", tooMuch)).rejects.toMatchObject({ code: "no_space" });
    await expect(store.write("sandbox/other", tooMuch, { ifAbsent: true })).rejects.toMatchObject({ code: "no_space" });
    expect((await readAll(store, "sandbox/blob")).equals(old)).toBe(true);
    expect(await store.stat("sandbox/other")).toBeUndefined();
    expect(readdirSync(join(volume.folder, ".temporary"))).toEqual([]);

    const version = first.outcome === "written" ? first.version : "";
    await expect(store.swapCell("sandbox/metadata.json", version, randomBytes(9 * 1024 * 1024))).rejects.toMatchObject({
      code: "no_space",
    });
    expect(Buffer.from((await store.readCell("sandbox/metadata.json"))?.body ?? []).toString()).toBe("1");
    expect(readdirSync(join(volume.folder, "sandbox/.head"))).toEqual(["v0000000000000001"]);
    expect((await store.swapCell("sandbox/metadata.json", version, bytes("2"))).outcome).toBe("written");
    await store.write("sandbox/other", [old]);
  } finally {
    volume.remove();
  }
});
