import type { Lab } from "../lab.ts";
import type { Program } from "../raw/bundle.ts";
import type { Aim, Comparison } from "../result.ts";
import { measurePair } from "../rounds.ts";
import { ClientSession } from "../server/client-session.ts";
import { summarizePhases } from "../statistics.ts";

const AIM: Aim = { bound: "at most", ratio: 1.15 };

interface Language {
  readonly name: "bash" | "python";
  readonly code: string;
  readonly args: readonly string[];
}

const LANGUAGES: readonly Language[] = [
  { name: "bash", code: "echo hello", args: ["bash", "-c", "echo hello"] },
  { name: "python", code: "print('hello')", args: ["python3", "-u", "-c", "print('hello')"] },
];

/** How long it takes from nothing to a sandbox, and to the first output of code in it. */
export async function measureCreate(lab: Lab): Promise<Comparison[]> {
  return [
    await bareCreate(lab, { id: "create", title: "Create a sandbox" }, {}),
    await bareCreate(
      lab,
      { id: "create-durable", title: "Create a sandbox with enable_checkpoint" },
      { enable_checkpoint: true },
    ),
    ...(await firstOutputs(lab)),
  ];
}

async function bareCreate(
  lab: Lab,
  names: Pick<Comparison, "id" | "title">,
  configuration: object,
): Promise<Comparison> {
  lab.progress(names.title);
  const phases: Record<string, number>[] = [];
  const ours = async (counts: boolean): Promise<number> => {
    const startMs = performance.now();
    const session = await ClientSession.create(lab.server.url, configuration);
    const elapsedMs = performance.now() - startMs;
    const found = await lab.server.log.phases("create", session.sandboxId);
    if (counts) phases.push(found);
    await session.destroy();
    return elapsedMs;
  };
  const pair = await measurePair(rounds(lab), ours, () => rawFirstByte(lab, lab.raw.agentProgram));
  return {
    ...names,
    unit: "ms",
    ours: { what: "WebSocket connect to RUNNING", summary: pair.ours },
    raw: { what: "runsc run of the same sandbox to its first byte", summary: pair.raw },
    aim: AIM,
    phases: { ours: summarizePhases(phases), raw: {} },
  };
}

async function firstOutputs(lab: Lab): Promise<Comparison[]> {
  const comparisons: Comparison[] = [];
  for (const language of LANGUAGES) comparisons.push(await firstOutput(lab, language));
  return comparisons;
}

async function firstOutput(lab: Lab, language: Language): Promise<Comparison> {
  lab.progress(`Create to first output of ${language.name}`);
  const ours = async (): Promise<number> => {
    const startMs = performance.now();
    const session = await ClientSession.create(lab.server.url);
    session.start(language.name, language.code);
    await session.firstOutput;
    const elapsedMs = performance.now() - startMs;
    await session.status("EXECUTION_DONE");
    await session.destroy();
    return elapsedMs;
  };
  const pair = await measurePair(rounds(lab), ours, () => rawFirstByte(lab, { args: language.args, asUser: true }));
  return {
    id: `first-output-${language.name}`,
    title: `Create to first output (${language.name})`,
    unit: "ms",
    ours: { what: `WebSocket connect, create, ${language.name}, first stdout event`, summary: pair.ours },
    raw: { what: `runsc run of ${language.name} to its first byte`, summary: pair.raw },
    aim: AIM,
  };
}

async function rawFirstByte(lab: Lab, program: Program): Promise<number> {
  const container = await lab.raw.run(program);
  const elapsedMs = await container.firstByteMs();
  await container.end();
  return elapsedMs;
}

function rounds(lab: Lab): number {
  return lab.quick ? 3 : 15;
}
