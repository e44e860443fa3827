import { describe, test } from "vitest";
import { whyNoEngine } from "../../../../../test/kit/server/server-process.ts";
import { temporaryFolder } from "../../../../../test/kit/temporary-folder.ts";
import { BalancedClient } from "./support/balanced-client.ts";
import { CrashServer } from "./support/crash-server.ts";
import { DURABLE } from "./support/pair.ts";
import { expectRolled } from "./support/rolling.ts";

const missing = whyNoEngine();
if (missing !== undefined) console.warn(`The test of a rolling restart on gVisor is skipped: ${missing}`);

describe.skipIf(missing !== undefined)("on gVisor", () => {
  test("two servers roll while clients keep executing: each sees every number once", async () => {
    const store = await temporaryFolder();
    const start = (): Promise<CrashServer> => CrashServer.start({ store, backend: "gvisor", leaseTtl: "15s" });
    const servers = [await start(), await start()];
    const clients = [0, 1].map((first) => new BalancedClient(() => servers.map(({ url }) => url), first));
    await Promise.all(clients.map((client) => client.create(DURABLE)));
    await expectRolled(servers, start, clients, 1);
  });
});
