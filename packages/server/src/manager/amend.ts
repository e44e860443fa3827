import {
  isSandboxId,
  parseDurationMs,
  SandboxerError,
  type About,
  type Head,
  type SandboxRecord,
} from "@sandboxer/protocol";
import type { OutlivingRecord } from "../records/sandbox-records.ts";
import type { ManagerContext } from "./context.ts";
import { describeLive, describeOutliving, describeStored } from "./describe.ts";
import type { LiveSandbox, SandboxFacts } from "./live-sandbox.ts";
import { noteOutliving } from "./outliving.ts";
import { checkEpoch, runningSandbox } from "./running.ts";
import { storedFacts } from "./stored-facts.ts";

export interface Amendments {
  readonly name?: string | null | undefined;
  readonly labels?: Readonly<Record<string, string>> | undefined;
  readonly idleTimeoutMs?: number | undefined;
  /** A time to live that begins now. */
  readonly ttl?: string | undefined;
  /** The end itself, or null for none; not together with `ttl`. */
  readonly expiresAt?: string | null | undefined;
}

/** Changes what people know a sandbox by, and how long it may live; one that nobody runs is left where it is. */
export function amendSandbox(
  context: ManagerContext,
  sandboxId: string,
  epoch: number | undefined,
  amendments: Amendments,
): Promise<SandboxRecord> {
  return context.taking.run(sandboxId, async () => {
    if (!context.sandboxes.has(sandboxId)) {
      const { durable, records } = context.options;
      const head = isSandboxId(sandboxId) ? await durable?.ownership.read(sandboxId) : undefined;
      if (head?.state === "parked") return amendStored(context, sandboxId, head, epoch, amendments);
      const record = head === undefined ? await records.get(sandboxId) : undefined;
      if (record !== undefined) return amendRecord(context, sandboxId, record, amendments);
    }
    const sandbox = await runningSandbox(context, sandboxId, epoch);
    await sandbox.queue.run(() => amendLive(context, sandbox, amendments));
    return describeLive(context, sandbox);
  });
}

async function amendStored(
  context: ManagerContext,
  sandboxId: string,
  head: Head,
  epoch: number | undefined,
  amendments: Amendments,
): Promise<SandboxRecord> {
  checkEpoch(head, epoch);
  const { ownership } = context.durable;
  const claimed = await ownership.claim(sandboxId);
  try {
    await ownership.update(sandboxId, inHead(amended(context, storedFacts(sandboxId, claimed), amendments)));
  } finally {
    await ownership.release(sandboxId);
  }
  return describeStored(context, sandboxId, (await ownership.read(sandboxId)) ?? head);
}

async function amendRecord(
  context: ManagerContext,
  sandboxId: string,
  record: OutlivingRecord,
  amendments: Amendments,
): Promise<SandboxRecord> {
  const next: OutlivingRecord = { ...record, ...inHead(amended(context, storedFacts(sandboxId, record), amendments)) };
  await context.options.records.put(sandboxId, next);
  return describeOutliving(sandboxId, next);
}

/** In the head first: what is not stored would be forgotten by the next server. */
async function amendLive(context: ManagerContext, sandbox: LiveSandbox, amendments: Amendments): Promise<void> {
  if (sandbox.state !== "running") throw new SandboxerError("wrong_state", `The sandbox is ${sandbox.state}.`);
  const next = amended(context, sandbox.facts, amendments);
  if (sandbox.durable) await context.durable.ownership.update(sandbox.id, inHead(next));
  await noteOutliving(context, next, false);
  const { about, labels, idleTimeoutMs } = next;
  sandbox.amend({ about, labels, idleTimeoutMs });
  context.events.append({ type: "sandbox.amended", sandboxId: sandbox.id, data: { ...about } });
}

function amended(context: ManagerContext, facts: SandboxFacts, amendments: Amendments): SandboxFacts {
  const { name, labels, idleTimeoutMs, ttl, expiresAt } = amendments;
  const about: About = {
    ...facts.about,
    ...(name === undefined ? {} : { name }),
    ...(ttl === undefined ? {} : { expires_at: expiry(context, facts.about.profile, ttl) }),
    ...(expiresAt === undefined ? {} : { expires_at: expiresAt }),
  };
  return { ...facts, about, labels: labels ?? facts.labels, idleTimeoutMs: idleTimeoutMs ?? facts.idleTimeoutMs };
}

function inHead({ about, labels, idleTimeoutMs, spec }: SandboxFacts) {
  return { about, idle_timeout: idleTimeoutMs / 1000, spec: { ...spec, labels: { ...labels } } };
}

/** Not longer from now than the profile allows. */
function expiry({ options }: ManagerContext, profile: string | null, ttl: string): string {
  const durationMs = parseDurationMs(ttl);
  const max = profile === null ? undefined : options.profiles.find(profile)?.ttl?.max;
  if (max !== undefined && durationMs > parseDurationMs(max)) {
    throw new SandboxerError("ttl_too_long", `A ttl of ${ttl} is more than ${profile} allows: ${max}.`, {
      details: { ttl, max, profile },
    });
  }
  return new Date(options.clock.wallMs() + durationMs).toISOString();
}
