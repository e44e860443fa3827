import { Sandbox } from "@sandboxer/client";
import type { Lab } from "../lab.ts";
import { agentOf } from "../raw/agent-of.ts";
import type { Aim, Comparison } from "../result.ts";
import { timed } from "../rounds.ts";
import { ClientSession } from "../server/client-session.ts";
import { execIn } from "../server/http-call.ts";
import { summarize } from "../statistics.ts";

const MINIMAL: Aim = { bound: "at most", ratio: 0.12 };
const COLD: Aim = { bound: "at most", ratio: 0.4 };
const CODE = { bash: "echo hello", python: "print('hello', flush=True)" };

/** The time of a minimal command in a running sandbox, and of code in a new interpreter to its first output. */
export async function measureExec(lab: Lab): Promise<Comparison[]> {
  lab.progress("Exec round trips");
  const session = await ClientSession.create(lab.server.url);
  const sandbox = await Sandbox.create({ url: lab.server.url.replace(/^ws/, "http") });
  const container = await lab.raw.run(lab.raw.agentProgram);
  const agent = agentOf(container);
  await agent.start();

  const agentExec = async (): Promise<void> => {
    const process = await agent.exec({ key: `true-${performance.now()}`, argv: ["/bin/true"] });
    await process.exited;
    await process.release();
  };
  const firstOutput = async (language: "bash" | "python"): Promise<number> => {
    const elapsedMs = await timed(() => {
      session.start(language, CODE[language]);
      return session.firstOutput;
    });
    await session.status("EXECUTION_DONE");
    return elapsedMs;
  };
  const raw = (...command: readonly string[]): Promise<number> =>
    lab.raw.firstOutput(["exec", "--user=1000:1000", container.id, ...command]);
  const ways = {
    http: () => timed(() => execIn(lab.server, sandbox.id, ["/bin/true"])),
    webSocket: () => timed(async () => sandbox.exec(["/bin/true"])),
    agentExec: () => timed(agentExec),
    agentPing: () => timed(() => agent.ping()),
    bash: () => firstOutput("bash"),
    python: () => firstOutput("python"),
    rawTrue: () => raw("/bin/true"),
    rawBash: () => raw("/bin/bash", "-c", CODE.bash),
    rawPython: () => raw("/usr/bin/python3", "-c", CODE.python),
  };
  const names = Object.keys(ways) as (keyof typeof ways)[];
  const values = Object.fromEntries(names.map((name) => [name, [] as number[]])) as Record<keyof typeof ways, number[]>;
  const rounds = lab.quick ? 10 : 50;
  for (let round = 0; round <= rounds; round++) {
    for (const name of names) {
      const elapsedMs = await ways[name]();
      if (round > 0) values[name].push(elapsedMs);
    }
  }
  await session.destroy();
  await sandbox.destroy();
  await container.end();

  const row = (
    [id, title, what]: readonly [string, string, string],
    [ours, theirs]: readonly [keyof typeof ways, keyof typeof ways],
    aim?: Aim,
  ): Comparison => ({
    id,
    title,
    unit: "ms",
    ours: { what, summary: summarize(values[ours]) },
    raw: { what: RAW[theirs] ?? "", summary: summarize(values[theirs]) },
    ...(aim === undefined ? {} : { aim }),
  });
  return [
    row(["exec-http", "Exec: /bin/true over HTTP", "`POST …/exec`, one request"], ["http", "rawTrue"], MINIMAL),
    row(
      ["exec-sdk", "Exec: /bin/true with the SDK", "`sandbox.exec()`: a request, and a WebSocket for the output"],
      ["webSocket", "rawTrue"],
      MINIMAL,
    ),
    row(
      ["exec-agent", "Exec: /bin/true through the agent", "SPAWN, EXIT and FORGET frames"],
      ["agentExec", "rawTrue"],
      MINIMAL,
    ),
    row(["exec-bash", "Code in a new bash to its first output", MESSAGE], ["bash", "rawBash"], COLD),
    row(["exec-python", "Code in a new Python to its first output", MESSAGE], ["python", "rawPython"], COLD),
    // No aim: a ping runs nothing. It shows the round trip's share of an exec.
    row(["ping-agent", "Ping of the agent", "PING frame and its reply; runs no program"], ["agentPing", "rawTrue"]),
  ];
}

const MESSAGE = "execute message on a WebSocket to the first output";
const RAW: Readonly<Record<string, string>> = {
  rawTrue: "runsc exec ID /bin/true",
  rawBash: "runsc exec ID bash -c, to its first output",
  rawPython: "runsc exec ID python3 -c, to its first output",
};
