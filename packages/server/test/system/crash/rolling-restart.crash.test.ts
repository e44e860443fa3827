import { test } from "vitest";
import { temporaryFolder } from "../../../../../test/kit/temporary-folder.ts";
import { BalancedClient } from "./support/balanced-client.ts";
import { CrashServer } from "./support/crash-server.ts";
import { DURABLE } from "./support/pair.ts";
import { expectRolled } from "./support/rolling.ts";

test("three servers roll twice while clients keep executing: each sees every number once", async () => {
  const store = await temporaryFolder();
  const start = (): Promise<CrashServer> => CrashServer.start({ store, leaseTtl: "5s" });
  const servers = [await start(), await start(), await start()];
  const clients = [0, 1, 2, 3, 4].map((first) => new BalancedClient(() => servers.map(({ url }) => url), first));
  await Promise.all(clients.map((client) => client.create(DURABLE)));
  await expectRolled(servers, start, clients, 2);
});
