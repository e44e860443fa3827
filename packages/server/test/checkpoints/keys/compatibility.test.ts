import { createHash } from "node:crypto";
import { cp } from "node:fs/promises";
import { join } from "node:path";
import { expect, it } from "vitest";
import { MasterKey } from "../../../src/checkpoints/keys/master-key.ts";
import { rotateDataKeys } from "../../../src/checkpoints/keys/rotate-data-keys.ts";
import { newKey, openStore, serverKeys, serverOn } from "./key-lab.ts";

const FIXTURES = join(import.meta.dirname, "..", "fixtures");
const SANDBOX = "5f0c2a7e-8f7b-4f0a-9d53-2f6a1f0b7c11";
const SNAPSHOT = "0b6a7c7e-51d5-4c1e-8c9e-1a2b3c4d5e6f";
const CHECKPOINT = "checkpoint_1790000000000.img";
const FROZEN = new MasterKey(createHash("sha256").update("frozen").digest());
const CONTENT = { hello: Buffer.from("hello, frozen world\n") };

it.each([2, 4])(
  "opens encrypted images of format %i as they were saved, and rotates their data keys",
  async (format) => {
    const { root, store } = await openStore();
    await cp(join(FIXTURES, `encrypted-format-${format}`), root, { recursive: true });
    expect(FROZEN.fingerprint).toBe("de44a824e3a43a71");
    const keys = new Map([
      ["frozen", FROZEN],
      ["next", newKey()],
    ]);
    const server = serverOn(store, serverKeys(keys, "frozen"));
    expect(await server.load(SANDBOX, CHECKPOINT)).toEqual(CONTENT);
    expect(await server.snapshots.verify(SNAPSHOT)).toMatchObject({ state: "ready" });
    expect(Buffer.from((await server.snapshots.readFiles(SNAPSHOT)) ?? []).toString()).toBe("a list of files");
    await rotateDataKeys(store, serverKeys(keys, "next", ["frozen"]), { apply: true });
    keys.delete("frozen");
    expect(await serverOn(store, serverKeys(keys, "next")).load(SANDBOX, CHECKPOINT)).toEqual(CONTENT);
  },
);
