import { isSandboxId, parseDurationMs, SandboxerError, type About, type SandboxRecord } from "@sandboxer/protocol";
import type { ManagerContext } from "./context.ts";
import { describeLive, describeStored } from "./describe.ts";
import type { LiveSandbox, SandboxFacts } from "./live-sandbox.ts";
import { checkEpoch, runningSandbox } from "./running.ts";
import { storedFacts } from "./stored-facts.ts";

export interface Amendments {
  readonly name?: string | null | undefined;
  readonly labels?: Readonly<Record<string, string>> | undefined;
  readonly idleTimeoutMs?: number | undefined;
  /** A time to live that begins now. */
  readonly ttl?: string | undefined;
}

/** Changes what people know a sandbox by, and how long it may live; one that nobody runs is left where it is. */
export async function amendSandbox(
  context: ManagerContext,
  sandboxId: string,
  epoch: number | undefined,
  amendments: Amendments,
): Promise<SandboxRecord> {
  const { durable } = context.options;
  const here = context.sandboxes.has(sandboxId);
  const head = here || !isSandboxId(sandboxId) ? undefined : await durable?.ownership.read(sandboxId);
  if (durable !== undefined && head?.state === "parked") {
    checkEpoch(head, epoch);
    const next = amended(context, storedFacts(sandboxId, head), amendments);
    const { ownership } = durable;
    await ownership.claim(sandboxId);
    try {
      await ownership.update(sandboxId, inHead(next));
    } finally {
      await ownership.release(sandboxId);
    }
    return describeStored(context, sandboxId, (await ownership.read(sandboxId)) ?? head);
  }
  const sandbox = await runningSandbox(context, sandboxId, epoch);
  await sandbox.queue.run(() => amendLive(context, sandbox, amendments));
  return describeLive(context, sandbox);
}

/** In the head first: what is not stored would be forgotten by the next server. */
async function amendLive(context: ManagerContext, sandbox: LiveSandbox, amendments: Amendments): Promise<void> {
  if (sandbox.state !== "running") throw new SandboxerError("wrong_state", `The sandbox is ${sandbox.state}.`);
  const next = amended(context, sandbox.facts, amendments);
  if (sandbox.durable) await context.durable.ownership.update(sandbox.id, inHead(next));
  const { about, labels, idleTimeoutMs } = next;
  sandbox.amend({ about, labels, idleTimeoutMs });
  context.events.append({ type: "sandbox.amended", sandboxId: sandbox.id, data: { ...about } });
}

function amended(context: ManagerContext, facts: SandboxFacts, amendments: Amendments): SandboxFacts {
  const { name, labels, idleTimeoutMs, ttl } = amendments;
  const about: About = {
    ...facts.about,
    ...(name === undefined ? {} : { name }),
    ...(ttl === undefined ? {} : { expires_at: expiry(context, facts.about.profile, ttl) }),
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
