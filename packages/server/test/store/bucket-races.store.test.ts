import { expect, it } from "vitest";
import { openDriver } from "../../src/store/open-driver.ts";
import { type Fault, FaultyProxy } from "../../../../test/kit/faulty-proxy.ts";
import { chainIn, race } from "./racers.ts";
import { fakeGcsServer } from "../../../../test/kit/store-servers/fake-gcs-server.ts";
import { minio } from "../../../../test/kit/store-servers/minio.ts";
import { storageTestbench } from "../../../../test/kit/store-servers/storage-testbench.ts";
import { withServer } from "../../../../test/kit/store-servers/with-server.ts";
import { eventually } from "../../../../test/kit/eventually.ts";

const ENTRIES = 20;
const FAULTS: readonly Fault[] = [
  "request-lost",
  "answer-lost",
  "answer-cut",
  ...[409, 429, 500, 503].map((status) => ({ status })),
  { statusInstead: 503 },
  { delayMs: 50 },
];

/** One request in five. */
function anything(): Fault | undefined {
  return Math.random() < 0.2 ? FAULTS[Math.floor(Math.random() * FAULTS.length)] : undefined;
}

for (const server of [minio, fakeGcsServer, storageTestbench]) {
  withServer(server, (running) => {
    it("loses no acknowledged write of processes that race, whatever happens on the way", async () => {
      const proxy = await FaultyProxy.start(running().endpoint);
      try {
        const address = await running().newStore(proxy.endpoint);
        proxy.fault = anything;
        const racers = ["a", "b", "c"].map((name) => race(address, name, ENTRIES));
        await Promise.all(racers.map(({ ended }) => ended));
        proxy.fault = () => undefined;
        const chain = await chainIn(await openDriver(address));
        expect(new Set(chain).size).toBe(chain.length);
        expect(chain.toSorted()).toEqual(racers.flatMap(({ acknowledged }) => acknowledged).toSorted());
        expect(chain).toHaveLength(3 * ENTRIES);
        // The entries of one process are in their original order.
        for (const { acknowledged } of racers) {
          expect(chain.filter((entry) => acknowledged.includes(entry))).toEqual(acknowledged);
        }
      } finally {
        await proxy.stop();
      }
    });

    it("loses no acknowledged write of processes that are killed in the middle", async () => {
      const address = await running().newStore();
      const racers = ["a", "b", "c"].map((name) => race(address, name, 0));
      await eventually("each has written", () => racers.every(({ acknowledged }) => acknowledged.length >= 5));
      for (const { child } of racers) child.kill("SIGKILL");
      await Promise.all(racers.map(({ ended }) => ended));
      const chain = await chainIn(await openDriver(address));
      expect(new Set(chain).size).toBe(chain.length);
      for (const { acknowledged } of racers) {
        expect(acknowledged.filter((entry) => !chain.includes(entry))).toEqual([]);
      }
    });
  });
}
