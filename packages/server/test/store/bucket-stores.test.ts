import { openStore } from "../../src/store/open-store.ts";
import { fakeGcsServer } from "./servers/fake-gcs-server.ts";
import { minio } from "./servers/minio.ts";
import { moto } from "./servers/moto.ts";
import { storageTestbench } from "./servers/storage-testbench.ts";
import { withServer } from "./servers/with-server.ts";
import { testStore } from "./store-contract.ts";

for (const server of [minio, moto, fakeGcsServer, storageTestbench]) {
  withServer(server, (running) => {
    testStore(server.name, async () => ({
      store: await openStore(await running().newStore()),
      close: async () => {},
    }));
  });
}
