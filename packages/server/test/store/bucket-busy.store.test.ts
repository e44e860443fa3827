import { expect, it } from "vitest";
import { openDriver } from "../../src/store/open-driver.ts";
import { fakeGcsServer } from "../../../../test/kit/store-servers/fake-gcs-server.ts";
import { minio } from "../../../../test/kit/store-servers/minio.ts";
import { withServer } from "../../../../test/kit/store-servers/with-server.ts";

/** More than the connections that a client of S3 opens. */
const READERS = 60;

for (const server of [minio, fakeGcsServer]) {
  withServer(server, (running) => {
    it("cells are written and read while blobs keep every connection busy", async () => {
      const store = await openDriver(await running().newStore());
      await store.write("blobs/large", [Buffer.alloc(8 * 1024 * 1024)]);
      const readers = Array.from({ length: READERS }, () => store.read("blobs/large")[Symbol.asyncIterator]());
      const begun = readers.map((reader) => reader.next().catch(() => undefined));
      await Promise.race(begun);
      expect(await store.swapCell("cells/one", undefined, Buffer.from("{}"))).toMatchObject({ outcome: "written" });
      const cell = await store.readCell("cells/one");
      expect(Buffer.from(cell?.body ?? []).toString()).toBe("{}");
      await Promise.all(readers.map(async (reader) => await reader.return?.()));
    });
  });
}
