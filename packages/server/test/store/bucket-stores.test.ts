import { openDriver } from "../../src/store/open-driver.ts";
import { fakeGcsServer } from "./servers/fake-gcs-server.ts";
import { minio } from "./servers/minio.ts";
import { moto } from "./servers/moto.ts";
import { storageTestbench } from "./servers/storage-testbench.ts";
import { withServer } from "./servers/with-server.ts";
import { testStore } from "./store-contract.ts";

for (const server of [minio, moto, fakeGcsServer, storageTestbench]) {
  withServer(server, (running) => {
    testStore(server.name, async () => ({
      store: await openDriver(await running().newStore()),
      close: async () => {},
    }));
  });
}
