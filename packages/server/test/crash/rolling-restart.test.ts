import { expect, test } from "vitest";
import { temporaryFolder } from "../websocket/support/temporary-folder.ts";
import { BalancedClient } from "./support/balanced-client.ts";
import { CrashServer } from "./support/crash-server.ts";

const DURABLE = { enable_checkpoint: true };
const LINES = 12;
const COUNT = `x=$(cat count); x=$((x+1)); echo $x > count; for i in $(seq 1 ${LINES}); do echo $x.$i; sleep 0.05; done`;

/** What the n-th run of {@link COUNT} in a sandbox prints: its state is what the run before it left. */
function countOf(run: number): string {
  return Array.from({ length: LINES }, (_, index) => `${run}.${index + 1}\n`).join("");
}

test(
  "three servers roll twice while clients keep executing: each sees every number once",
  { timeout: 60_000 },
  async () => {
    const store = await temporaryFolder();
    const start = (): Promise<CrashServer> => CrashServer.start({ store, leaseTtl: "5s" });
    const servers = [await start(), await start(), await start()];
    const rolled = new AbortController();

    const clients = [0, 1, 2, 3, 4].map((first) => new BalancedClient(() => servers.map(({ url }) => url), first));
    const live = async (client: BalancedClient): Promise<void> => {
      await client.run("echo 0 > count");
      let runs = 0;
      while (!rolled.signal.aborted) expect(await client.run(COUNT)).toBe(countOf((runs += 1)));
      expect(await client.run("cat count")).toBe(`${runs}\n`);
    };
    const roll = async (): Promise<void> => {
      for (const index of [0, 1, 2, 0, 1, 2]) {
        expect(await servers[index]?.stop()).toBe(0);
        servers[index] = await start();
      }
    };

    await Promise.all(clients.map((client) => client.create(DURABLE)));
    const rolling = roll().finally(() => rolled.abort());
    await Promise.all([rolling, ...clients.map(live)]);
    // Every server has gone twice, so that nobody came through on one socket.
    for (const { moves } of clients) expect(moves).toBeGreaterThan(0);
  },
);
