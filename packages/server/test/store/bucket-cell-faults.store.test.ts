import { randomUUID } from "node:crypto";
import { describe, expect, it } from "vitest";
import { settleSwap } from "../../src/lease/cell-swap.ts";
import { AmbiguousWriteError, type Cell } from "../../src/store/store.ts";
import { systemClock } from "../../src/support/clock.ts";
import { behindFaults, reads, UNCLEAR, writes } from "./faults.ts";
import type { Fault } from "../../../../test/kit/faulty-proxy.ts";
import { fakeGcsServer } from "../../../../test/kit/store-servers/fake-gcs-server.ts";
import { minio } from "../../../../test/kit/store-servers/minio.ts";
import { withServer } from "../../../../test/kit/store-servers/with-server.ts";
import { bytes, collect } from "./store-contract.ts";
import { meanwhile } from "../../../../test/kit/meanwhile.ts";

const KEY = "sandbox/metadata.json";

for (const server of [minio, fakeGcsServer]) {
  withServer(server, (running) => {
    const setting = behindFaults(server, running);
    const textOf = async (key: string): Promise<string> =>
      Buffer.from((await setting().direct.readCell(key))?.body ?? []).toString();

    describe.each(UNCLEAR)("cells, when a write meets %s", (_, fault) => {
      it("report an unclear outcome, and do not retry automatically", async () => {
        const { proxy, store } = setting();
        proxy.once(writes, fault);
        await expect(store.swapCell(KEY, undefined, bytes("one"))).rejects.toBeInstanceOf(AmbiguousWriteError);
        expect(proxy.seen.filter(writes)).toHaveLength(1);
      });

      it("settle to written, once", async () => {
        const { proxy, store } = setting();
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

    it("cells settle to written when the write arrives after its time", async () => {
      const { direct, proxy, store } = setting();
      const body = bytes(randomUUID());
      const isOurs = (cell: Cell): boolean => Buffer.from(cell.body).equals(body);
      proxy.once(writes, { delayMs: 5_300 });
      const result = await settleSwap(store, systemClock, { key: KEY, expected: undefined, body, isOurs });
      expect(result.outcome).toBe("written");
      await meanwhile(600);
      const cell = await direct.readCell(KEY);
      expect(cell?.version).toBe(result.outcome === "written" ? result.present.version : "");
    });

    it("cells are read again when an answer fails, is late, or breaks off", async () => {
      const { proxy, store } = setting();
      await store.swapCell(KEY, undefined, bytes("value"));
      const faults: Fault[] = ["request-lost", "answer-lost", "answer-cut", { status: 503 }, { delayMs: 300 }];
      for (const fault of faults) {
        proxy.once(reads, fault);
        expect(Buffer.from((await store.readCell(KEY))?.body ?? []).toString()).toBe("value");
      }
    });

    it("a swap takes one request, and so does a read", async () => {
      const { proxy, store } = setting();
      const first = await store.swapCell(KEY, undefined, bytes("1"));
      await store.swapCell(KEY, first.outcome === "written" ? first.version : "", bytes("2"));
      await store.readCell(KEY);
      expect(proxy.seen.map(({ method }) => method)).toHaveLength(3);
    });

    it("a store that stays unavailable is an error that names it", async () => {
      const { proxy, store } = setting();
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
