import { randomBytes, randomUUID } from "node:crypto";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { settleSwap } from "../../src/lease/cell-swap.ts";
import { openStore } from "../../src/store/open-store.ts";
import { AmbiguousWriteError, type Cell, type ObjectStore } from "../../src/store/store.ts";
import { systemClock } from "../../src/support/clock.ts";
import { type Fault, FaultyProxy, type SeenRequest } from "./faulty-proxy.ts";
import { fakeGcsServer } from "./servers/fake-gcs-server.ts";
import { minio } from "./servers/minio.ts";
import { storageTestbench } from "./servers/storage-testbench.ts";
import { withServer } from "./servers/with-server.ts";
import { UploadSessions } from "./upload-sessions.ts";
import { bytes, collect, readAll } from "./store-contract.ts";

const KEY = "sandbox/metadata.json";
/** Three parts. */
const LARGE_BYTES = 33 * 1024 * 1024;

const writes = ({ method, path }: SeenRequest): boolean => method !== "GET" && method !== "HEAD" && !isAbort(path);
const isAbort = (path: string): boolean => path.includes("AbortMultipartUpload");
const reads = ({ method }: SeenRequest): boolean => method === "GET" || method === "HEAD";

const UNCLEAR: [string, Fault][] = [
  ["a lost request", "request-lost"],
  ["a lost answer", "answer-lost"],
  ["409", { status: 409 }],
  ["429", { status: 429 }],
  ["500", { status: 500 }],
  ["503", { status: 503 }],
  ["500 after it was carried out", { statusInstead: 500 }],
];

for (const server of [minio, fakeGcsServer, storageTestbench]) {
  withServer(server, (running) => {
    let proxy: FaultyProxy;
    let store: ObjectStore;
    let direct: ObjectStore;
    beforeEach(async () => {
      proxy = await FaultyProxy.start(running().endpoint);
      if (server === fakeGcsServer) proxy.sessions = new UploadSessions();
      const address = await running().newStore(proxy.endpoint);
      store = await openStore(address);
      direct = await openStore(address.replace(proxy.endpoint, running().endpoint));
    });
    afterEach(async () => await proxy.stop());

    const textOf = async (key: string): Promise<string> =>
      Buffer.from((await direct.readCell(key))?.body ?? []).toString();

    describe.each(UNCLEAR)("cells, when a write meets %s", (_, fault) => {
      it("say that it is unclear, and do not try again by themselves", async () => {
        proxy.once(writes, fault);
        await expect(store.swapCell(KEY, undefined, bytes("one"))).rejects.toBeInstanceOf(AmbiguousWriteError);
        expect(proxy.seen.filter(writes)).toHaveLength(1);
      });

      it("settle to written, once", async () => {
        const first = await store.swapCell(KEY, undefined, bytes("first"));
        const expected = first.outcome === "written" ? first.version : "";
        const body = bytes(randomUUID());
        proxy.once(writes, fault);
        const isOurs = (cell: Cell): boolean => Buffer.from(cell.body).equals(body);
        const result = await settleSwap(store, systemClock, { key: KEY, expected, body, isOurs });
        expect(result.outcome).toBe("written");
        expect(await textOf(KEY)).toBe(Buffer.from(body).toString());
        const next = result.outcome === "written" ? result.present.version : "";
        expect((await store.swapCell(KEY, next, bytes("next"))).outcome).toBe("written");
      });
    });

    it("cells settle to written when the write arrives after its time", { timeout: 30_000 }, async () => {
      const body = bytes(randomUUID());
      const isOurs = (cell: Cell): boolean => Buffer.from(cell.body).equals(body);
      proxy.once(writes, { delayMs: 5_300 });
      const result = await settleSwap(store, systemClock, { key: KEY, expected: undefined, body, isOurs });
      expect(result.outcome).toBe("written");
      await new Promise((done) => setTimeout(done, 600));
      const cell = await direct.readCell(KEY);
      expect(cell?.version).toBe(result.outcome === "written" ? result.present.version : "");
    });

    it("cells are read again when an answer fails, is late, or breaks off", async () => {
      await store.swapCell(KEY, undefined, bytes("value"));
      const faults: Fault[] = ["request-lost", "answer-lost", "answer-cut", { status: 503 }, { delayMs: 300 }];
      for (const fault of faults) {
        proxy.once(reads, fault);
        expect(Buffer.from((await store.readCell(KEY))?.body ?? []).toString()).toBe("value");
      }
    });

    it("a swap takes one request, and so does a look", async () => {
      const first = await store.swapCell(KEY, undefined, bytes("1"));
      await store.swapCell(KEY, first.outcome === "written" ? first.version : "", bytes("2"));
      await store.readCell(KEY);
      expect(proxy.seen.map(({ method }) => method)).toHaveLength(3);
    });

    it.each(UNCLEAR)("a blob is written all the same, and is one's own, when a write meets %s", async (_, fault) => {
      for (const ifAbsent of [false, true]) {
        proxy.once(writes, fault);
        const result = await store.write(`blob-${ifAbsent}`, [bytes("content")], { ifAbsent });
        expect(result).toEqual({ outcome: "written", sizeBytes: 7 });
        expect((await readAll(direct, `blob-${ifAbsent}`)).toString()).toBe("content");
      }
    });

    it.each(UNCLEAR.slice(0, 2))(
      "a large blob survives %s, whichever request it is",
      { timeout: 60_000 },
      async (_, fault) => {
        const content = randomBytes(LARGE_BYTES);
        await store.write("large-0", [content], { ifAbsent: true });
        const count = proxy.seen.filter(writes).length;
        for (let which = 1; which <= count; which++) {
          let left = which;
          proxy.once((request) => writes(request) && --left === 0, fault);
          const result = await store.write(`large-${which}`, [content], { ifAbsent: true });
          expect(result).toEqual({ outcome: "written", sizeBytes: LARGE_BYTES });
          expect((await readAll(direct, `large-${which}`)).equals(content)).toBe(true);
          await direct.delete(`large-${which}`);
        }
      },
    );

    it("a blob is read to its end when connections break in the middle", async () => {
      const content = randomBytes(LARGE_BYTES);
      await direct.write("large", [content]);
      for (const fault of ["request-lost", "answer-cut", { status: 503 }] as const) {
        proxy.once(reads, fault);
        expect((await readAll(store, "large")).equals(content)).toBe(true);
      }
      proxy.once(reads, "answer-cut");
      const got = await readAll(store, "large", { start: 1_000_001, end: 30_000_003 });
      expect(got.equals(content.subarray(1_000_001, 30_000_003))).toBe(true);
    });

    it("a blob that is replaced while it is read is not mixed with the new one", async () => {
      const content = randomBytes(LARGE_BYTES);
      await direct.write("large", [content]);
      proxy.once(reads, "answer-cut");
      const reading = store.read("large")[Symbol.asyncIterator]();
      const pieces = [(await reading.next()).value as Uint8Array];
      await direct.write("large", [randomBytes(LARGE_BYTES)]);
      const rest = await collect({ [Symbol.asyncIterator]: () => reading }).catch((error: unknown) => error);
      // Some stores still have the old one.
      if (Array.isArray(rest)) expect(Buffer.concat([...pieces, ...(rest as Uint8Array[])]).equals(content)).toBe(true);
      else expect(rest).toMatchObject({ code: "store_unavailable" });
    });

    it("an upload that is given up leaves nothing", async () => {
      async function* failing(): AsyncGenerator<Uint8Array> {
        for (let part = 0; part < 5; part++) yield randomBytes(8 * 1024 * 1024);
        throw new Error("the producer failed");
      }
      await expect(store.write("large", failing())).rejects.toThrow("the producer failed");
      expect(proxy.seen.at(-1)?.method).toBe("DELETE");
      expect(await collect(direct.list(""))).toEqual([]);
    });

    it("a store that stays away is an error that says so", { timeout: 40_000 }, async () => {
      proxy.fault = () => "request-lost";
      await expect(store.stat("blob")).rejects.toMatchObject({
        code: "store_unavailable",
        message: expect.stringContaining("cannot be reached") as unknown,
      });
      proxy.fault = () => ({ status: 503 });
      await expect(collect(store.list(""))).rejects.toThrow("503");
    });
  });
}
