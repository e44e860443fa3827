import type { Lab } from "../lab.ts";
import type { Aim, Comparison, Findings } from "../result.ts";
import { measurePair, type Pair } from "../rounds.ts";
import { ClientSession } from "../server/client-session.ts";
import type { ServerProcess } from "../server/server-process.ts";
import { startWarmServer, withHitRate } from "../server/warm-server.ts";
import { summarizePhases } from "../statistics.ts";
import { coldRestore, warmRestore } from "./prepared.ts";
import { rawFirstByte, rounds } from "./raw-first-byte.ts";

const AIM: Aim = { bound: "at most", ratio: 1.15 };
/** A pooled sandbox must beat an engine that has to start. */
const WARM_AIM: Aim = { bound: "at most", ratio: 1 };

/** The place where sandboxes are created, and what each creation waits for. */
interface Place {
  readonly server: ServerProcess;
  readonly warm: boolean;
  readonly ready: () => Promise<void>;
}

interface Language {
  readonly name: "bash" | "python";
  readonly code: string;
  readonly args: readonly string[];
}

const LANGUAGES: readonly Language[] = [
  { name: "bash", code: "echo hello", args: ["bash", "-c", "echo hello"] },
  { name: "python", code: "print('hello')", args: ["python3", "-u", "-c", "print('hello')"] },
];

/** The time from nothing to a sandbox, and to the first output of code in it. */
export async function measureCreate(lab: Lab): Promise<Partial<Findings>> {
  const cold: Place = { server: lab.server, warm: false, ready: async () => {} };
  const comparisons = [...(await createsAt(lab, cold)), await coldRestore(lab)];
  const server = await startWarmServer(lab);
  try {
    comparisons.push(...(await createsAt(lab, { server, warm: true, ready: server.ready })));
    comparisons.push(await warmRestore(lab, server));
    return { comparisons };
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    return { comparisons, skipped: [{ what: "Creating with warm sandboxes", why }] };
  } finally {
    await server.stop();
  }
}

async function createsAt(lab: Lab, place: Place): Promise<Comparison[]> {
  const rows = [
    await bareCreate(lab, place, "create", "Create a sandbox", {}),
    await bareCreate(lab, place, "create-durable", "Create a sandbox with enable_checkpoint", {
      enable_checkpoint: true,
    }),
  ];
  for (const language of LANGUAGES) rows.push(await firstOutput(lab, place, language));
  return rows;
}

/** How rows of pooled sandboxes differ from the others. */
function named({ warm }: Place, id: string, title: string): Pick<Comparison, "id" | "title" | "aim"> {
  if (!warm) return { id, title, aim: AIM };
  return { id: `warm-${id}`, title: `${title}, warm`, aim: WARM_AIM };
}

/** With how many of its requests got a pooled sandbox. */
async function pairAt({ server, warm }: Place, pair: () => Promise<Pair>): Promise<Pair & { readonly hits: string }> {
  if (!warm) return { ...(await pair()), hits: "" };
  const { result, hits } = await withHitRate(server, pair);
  return { ...result, hits: `; ${hits}` };
}

async function bareCreate(
  lab: Lab,
  place: Place,
  id: string,
  title: string,
  configuration: object,
): Promise<Comparison> {
  const { server } = place;
  const names = named(place, id, title);
  lab.progress(names.title);
  const phases: Record<string, number>[] = [];
  const ours = async (counts: boolean): Promise<number> => {
    await place.ready();
    const startMs = performance.now();
    const session = await ClientSession.create(server.url, configuration);
    const elapsedMs = performance.now() - startMs;
    const found = await server.log.phases("create", session.sandboxId);
    if (counts) phases.push(found);
    await session.destroy();
    return elapsedMs;
  };
  const raw = (): Promise<number> => rawFirstByte(lab, lab.raw.agentProgram);
  const pair = await pairAt(place, () => measurePair(rounds(lab), ours, raw));
  return {
    ...names,
    unit: "ms",
    ours: { what: `WebSocket connect to RUNNING${pair.hits}`, summary: pair.ours },
    raw: { what: "runsc run of the same sandbox to its first byte", summary: pair.raw },
    phases: { ours: summarizePhases(phases), raw: {} },
  };
}

async function firstOutput(lab: Lab, place: Place, language: Language): Promise<Comparison> {
  const names = named(place, `first-output-${language.name}`, `Create to first output (${language.name})`);
  lab.progress(names.title);
  const ours = async (): Promise<number> => {
    await place.ready();
    const startMs = performance.now();
    const session = await ClientSession.create(place.server.url);
    session.start(language.name, language.code);
    await session.firstOutput;
    const elapsedMs = performance.now() - startMs;
    await session.status("EXECUTION_DONE");
    await session.destroy();
    return elapsedMs;
  };
  const raw = (): Promise<number> => rawFirstByte(lab, { args: language.args, asUser: true });
  const pair = await pairAt(place, () => measurePair(rounds(lab), ours, raw));
  return {
    ...names,
    unit: "ms",
    ours: { what: `WebSocket connect, create, ${language.name}, first stdout event${pair.hits}`, summary: pair.ours },
    raw: { what: `runsc run of ${language.name} to its first byte`, summary: pair.raw },
  };
}
