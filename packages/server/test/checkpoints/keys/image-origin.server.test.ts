import { describe, expect, it } from "vitest";
import { BlockCipher } from "../../../src/checkpoints/blocks/block-cipher.ts";
import { associatedWith, type Envelope, MANIFEST_SEQUENCE } from "../../../src/checkpoints/block-image/envelope.ts";
import { ImageStore } from "../../../src/checkpoints/image-store.ts";
import { decodeFooter, encodeFooter, FOOTER_BYTES, sha256Of } from "../../../src/checkpoints/image-format.ts";
import { readWhole, type ObjectStore } from "../../../src/store/store.ts";
import { stateOf } from "../block-image/block-images.ts";
import { newId, newKey, openStore, serverKeys, serverOn } from "./key-lab.ts";

const CONTENT = { text: Buffer.from("the content of a sandbox\n".repeat(1000)) };
const keyOf = (sandboxId: string, name: string): string => `${sandboxId}/checkpoints/${name}`;

async function partsOf(store: ObjectStore, key: string) {
  const bytes = (await readWhole(store, key)) ?? Buffer.alloc(0);
  const footer = decodeFooter(bytes.subarray(-FOOTER_BYTES), bytes.length);
  if ("problem" in footer) throw new Error(footer.problem);
  const envelope = JSON.parse(bytes.subarray(footer.manifestOffset, -FOOTER_BYTES).toString()) as Envelope;
  return { bytes, footer, envelope };
}

/** Writes an image with another envelope and matching digests, as anyone with access to the store may. */
async function forge(store: ObjectStore, from: string, to: string, change: (envelope: Envelope) => object) {
  const { bytes, footer, envelope } = await partsOf(store, from);
  const text = Buffer.from(JSON.stringify(change(envelope)));
  const forged = { ...footer, manifestBytes: text.length, manifestSha256: sha256Of(text) };
  await store.write(to, [bytes.subarray(0, footer.manifestOffset), text, encodeFooter(forged)]);
}

async function twoSandboxes() {
  const { store } = await openStore();
  const server = serverOn(store, serverKeys(new Map([["main", newKey()]]), "main"));
  const [own, other] = [newId(), newId()];
  const { name } = await server.save(own, CONTENT);
  const { name: otherName } = await server.save(other, CONTENT, { parent: "an-earlier-image" });
  return { store, server, own, other, name, otherName };
}

describe("an encrypted image", () => {
  it("has its origin as associated data, and cannot be decrypted without it", async () => {
    const { store, server, own, name } = await twoSandboxes();
    const { bytes, footer, envelope } = await partsOf(store, keyOf(own, name));
    expect(envelope).toMatchObject({ format: 4, origin: { sandbox_id: own, parent: null } });
    const dataKey = await server.dataKeys.open(envelope.encryption?.key_id ?? "", {});
    const sealed = bytes.subarray(footer.manifestOffset - envelope.manifest.size_bytes, footer.manifestOffset);
    const open = (associated: string) =>
      new BlockCipher(dataKey).open(envelope.writer_id, MANIFEST_SEQUENCE, sealed, associated);
    expect(open("")).toBeUndefined();
    expect(open(associatedWith(envelope, newId()))).toBeUndefined();
    expect(open(associatedWith(envelope))).toBeDefined();
  });

  it.each([
    ["as it is", (envelope: Envelope) => envelope],
    [
      "that claims to be its own",
      (envelope: Envelope, own: string) => ({ ...envelope, origin: { ...envelope.origin, sandbox_id: own } }),
    ],
    ["that claims no origin", (envelope: Envelope) => ({ ...envelope, origin: undefined, format: 3 })],
    ["with another parent", (envelope: Envelope) => ({ ...envelope, origin: { ...envelope.origin, parent: null } })],
  ])("of another sandbox, %s, is refused at decryption", async (_, change) => {
    const { store, server, own, other, otherName } = await twoSandboxes();
    const name = "checkpoint_1790000009999.img";
    await forge(store, keyOf(other, otherName), keyOf(own, name), (envelope) => change(envelope, own));
    await expect(server.load(own, name)).rejects.toMatchObject({
      code: "image_damaged",
      message: expect.stringContaining("it does not decrypt") as unknown,
    });
  });

  it("is written without its origin while an older server of the store is alive, and is read", async () => {
    const { store } = await openStore();
    const masters = serverKeys(new Map([["main", newKey()]]), "main");
    const server = serverOn(store, masters);
    const older = new ImageStore(store, { dataKeys: server.dataKeys, bindsOrigin: async () => false });
    const sandboxId = newId();
    const key = keyOf(sandboxId, "checkpoint_1790000000000.img");
    await older.withKey({}, `sandbox:${sandboxId}`, undefined, async (dataKey) =>
      older.save(
        [key],
        await stateOf(CONTENT),
        { sandboxId, createdAt: "2026-01-01T00:00:00Z", parent: null },
        { dataKey },
      ),
    );
    expect((await partsOf(store, key)).envelope).not.toHaveProperty("origin");
    expect(await server.load(sandboxId, "checkpoint_1790000000000.img")).toEqual(CONTENT);
  });
});
