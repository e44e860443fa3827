import { it } from "vitest";
import { openDriver } from "../../src/store/open-driver.ts";
import { expectDamageLeftAlone, noise, storedSandboxes } from "../gateway/http/damaged-records.ts";
import { HttpClient } from "../gateway/http/support.ts";
import { startTestServer } from "../../../../test/kit/server/test-server.ts";
import { fakeGcsServer } from "../../../../test/kit/store-servers/fake-gcs-server.ts";
import { minio } from "../../../../test/kit/store-servers/minio.ts";
import { withServer } from "../../../../test/kit/store-servers/with-server.ts";

for (const server of [minio, fakeGcsServer]) {
  withServer(server, (running) => {
    it("a damaged head is left alone and named, and everything else continues", { timeout: 30_000 }, async () => {
      const address = await running().newStore();
      const first = await startTestServer({ store: address });
      const ids = await storedSandboxes(new HttpClient(first), 3);
      const object = `${ids[1]}/metadata.json`;
      await (await openDriver(address)).write(object, [noise()]);
      await expectDamageLeftAlone(first, ids, object);
    });
  });
}
