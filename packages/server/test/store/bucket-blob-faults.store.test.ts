import { randomBytes } from "node:crypto";
import { expect, it } from "vitest";
import { behindFaults, reads, UNCLEAR, writes } from "./faults.ts";
import { fakeGcsServer } from "../../../../test/kit/store-servers/fake-gcs-server.ts";
import { minio } from "../../../../test/kit/store-servers/minio.ts";
import { storageTestbench } from "../../../../test/kit/store-servers/storage-testbench.ts";
import { withServer } from "../../../../test/kit/store-servers/with-server.ts";
import { bytes, collect, readAll } from "./store-contract.ts";

/** How many of its parts a large blob takes: two whole ones, and a last one that is not. */
const LARGE_PARTS = 2.25;
/** Readers get 1 MiB at a time: at least one before an answer is cut in its middle, and one after. */
const READ_BYTES = 3 * 1024 * 1024 + 17;

for (const server of [minio, fakeGcsServer, storageTestbench]) {
  withServer(server, (running) => {
    const setting = behindFaults(server, running);

    it.each(UNCLEAR)("a blob is written, and recognized as our own, when a write meets %s", async (_, fault) => {
      const { direct, proxy, store } = setting();
      for (const ifAbsent of [false, true]) {
        proxy.once(writes, fault);
        const result = await store.write(`blob-${ifAbsent}`, [bytes("content")], { ifAbsent });
        expect(result).toEqual({ outcome: "written", sizeBytes: 7 });
        expect((await readAll(direct, `blob-${ifAbsent}`)).toString()).toBe("content");
      }
    });

    it.each(UNCLEAR.slice(0, 2))("a large blob survives %s, whichever request it is", async (_, fault) => {
      const { direct, proxy, store, partBytes } = setting();
      const content = randomBytes(LARGE_PARTS * partBytes);
      await store.write("large-0", [content], { ifAbsent: true });
      const count = proxy.seen.filter(writes).length;
      for (let which = 1; which <= count; which++) {
        let left = which;
        proxy.once((request) => writes(request) && --left === 0, fault);
        const result = await store.write(`large-${which}`, [content], { ifAbsent: true });
        expect(result).toEqual({ outcome: "written", sizeBytes: content.byteLength });
        expect((await readAll(direct, `large-${which}`)).equals(content)).toBe(true);
        await direct.delete(`large-${which}`);
      }
    });

    it("a blob is read to its end when connections break in the middle", async () => {
      const { direct, proxy, store } = setting();
      const content = randomBytes(READ_BYTES);
      await direct.write("large", [content]);
      for (const fault of ["request-lost", "answer-cut", { status: 503 }] as const) {
        proxy.once(reads, fault);
        expect((await readAll(store, "large")).equals(content)).toBe(true);
      }
      proxy.once(reads, "answer-cut");
      const got = await readAll(store, "large", { start: 100_001, end: 3_000_003 });
      expect(got.equals(content.subarray(100_001, 3_000_003))).toBe(true);
    });

    it("a blob that is replaced while it is read is not mixed with the new one", async () => {
      const { direct, proxy, store } = setting();
      const content = randomBytes(READ_BYTES);
      await direct.write("large", [content]);
      proxy.once(reads, "answer-cut");
      const reading = store.read("large")[Symbol.asyncIterator]();
      const pieces = [(await reading.next()).value as Uint8Array];
      await direct.write("large", [randomBytes(READ_BYTES)]);
      const rest = await collect({ [Symbol.asyncIterator]: () => reading }).catch((error: unknown) => error);
      // Some stores still have the old one.
      if (Array.isArray(rest)) expect(Buffer.concat([...pieces, ...(rest as Uint8Array[])]).equals(content)).toBe(true);
      else expect(rest).toMatchObject({ code: "store_unavailable" });
    });

    it("an aborted upload leaves nothing", async () => {
      const { direct, proxy, store, partBytes } = setting();
      async function* failing(): AsyncGenerator<Uint8Array> {
        for (let piece = 0; piece < 5; piece++) yield randomBytes(0.625 * partBytes);
        throw new Error("the producer failed");
      }
      await expect(store.write("large", failing())).rejects.toThrow("the producer failed");
      expect(proxy.seen.at(-1)?.method).toBe("DELETE");
      expect(await collect(direct.list(""))).toEqual([]);
    });
  });
}
