import { openDriver } from "../../src/store/open-driver.ts";
import { fakeGcsServer } from "../../../../test/kit/store-servers/fake-gcs-server.ts";
import { minio } from "../../../../test/kit/store-servers/minio.ts";
import { moto } from "../../../../test/kit/store-servers/moto.ts";
import { storageTestbench } from "../../../../test/kit/store-servers/storage-testbench.ts";
import { withServer } from "../../../../test/kit/store-servers/with-server.ts";
import { testStore } from "./store-contract.ts";

for (const server of [minio, moto, fakeGcsServer, storageTestbench]) {
  withServer(server, (running) => {
    testStore(server.name, async () => ({
      store: await openDriver(await running().newStore()),
      close: async () => {},
    }));
  });
}
