import { expect } from "vitest";
import type { BalancedClient } from "./balanced-client.ts";
import type { CrashServer } from "./crash-server.ts";

const LINES = 12;
const COUNT = `x=$(cat count); x=$((x+1)); echo $x > count; for i in $(seq 1 ${LINES}); do echo $x.$i; sleep 0.05; done`;

/** The output of the n-th run of {@link COUNT} in a sandbox, which continues from the state of the previous run. */
function countOf(run: number): string {
  return Array.from({ length: LINES }, (_, index) => `${run}.${index + 1}\n`).join("");
}

/**
 * Each server in turn is stopped and replaced, this many times, while every client counts in its sandbox. Each client
 * sees each number once, in order, and each sandbox survives all of it.
 */
export async function expectRolled(
  servers: CrashServer[],
  start: () => Promise<CrashServer>,
  clients: readonly BalancedClient[],
  times: number,
): Promise<void> {
  const rolled = new AbortController();
  const live = async (client: BalancedClient): Promise<void> => {
    await client.run("echo 0 > count");
    let runs = 0;
    while (!rolled.signal.aborted) expect(await client.run(COUNT)).toBe(countOf((runs += 1)));
    expect(await client.run("cat count")).toBe(`${runs}\n`);
  };
  const roll = async (): Promise<void> => {
    for (let turn = 0; turn < times * servers.length; turn++) {
      const index = turn % servers.length;
      expect(await servers[index]?.stop()).toBe(0);
      servers[index] = await start();
    }
  };
  const rolling = roll().finally(() => rolled.abort());
  // Also after a failure the servers come to the end of their turn: none is started behind the test's back.
  const outcomes = await Promise.allSettled([rolling, ...clients.map(live)]);
  for (const outcome of outcomes) if (outcome.status === "rejected") throw outcome.reason;
  // Every server has gone, so that nobody came through on one socket.
  for (const { moves } of clients) expect(moves).toBeGreaterThan(0);
}
