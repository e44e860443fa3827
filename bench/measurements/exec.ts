import type { Lab } from "../lab.ts";
import { agentOf } from "../raw/agent-of.ts";
import type { Aim, Comparison } from "../result.ts";
import { timed } from "../rounds.ts";
import { ClientSession } from "../server/client-session.ts";
import { summarize } from "../statistics.ts";

const AIM: Aim = { bound: "at most", ratio: 1 / 30 };

/** The time of a minimal command in a running sandbox. */
export async function measureExec(lab: Lab): Promise<Comparison[]> {
  lab.progress("Exec round trips");
  const session = await ClientSession.create(lab.server.url);
  const container = await lab.raw.run(lab.raw.agentProgram);
  const agent = agentOf(container);
  await agent.start();

  const agentExec = async (): Promise<void> => {
    const process = await agent.exec({ key: `true-${performance.now()}`, argv: ["/bin/true"] });
    await process.exited;
    await process.release();
  };
  const ways = {
    webSocket: () => session.execute("bash", ":"),
    agentExec,
    agentPing: () => agent.ping(),
    raw: () => lab.raw.command(["exec", "--user=1000:1000", container.id, "/bin/true"]),
  };
  const values: Record<keyof typeof ways, number[]> = { webSocket: [], agentExec: [], agentPing: [], raw: [] };
  const rounds = lab.quick ? 10 : 50;
  for (let round = 0; round <= rounds; round++) {
    for (const name of Object.keys(ways) as (keyof typeof ways)[]) {
      const elapsedMs = await timed(ways[name]);
      if (round > 0) values[name].push(elapsedMs);
    }
  }
  await session.destroy();
  await container.end();

  const raw = { what: "runsc exec ID /bin/true", summary: summarize(values.raw) };
  const comparison = (id: string, title: string, what: string, measured: readonly number[]): Comparison => ({
    id,
    title,
    unit: "ms",
    ours: { what, summary: summarize(measured) },
    raw,
  });
  return [
    {
      ...comparison(
        "exec-websocket",
        "Exec: bash `:` over WebSocket",
        "execute message to EXECUTION_DONE, a bash process",
        values.webSocket,
      ),
      aim: AIM,
    },
    {
      ...comparison(
        "exec-agent",
        "Exec: /bin/true through the agent",
        "SPAWN, EXIT and FORGET frames",
        values.agentExec,
      ),
      aim: AIM,
    },
    // No aim: a ping runs nothing. It shows the round trip's share of an exec.
    comparison("ping-agent", "Ping of the agent", "PING frame and its reply; runs no program", values.agentPing),
  ];
}
