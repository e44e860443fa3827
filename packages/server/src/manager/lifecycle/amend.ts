import {
  MAX_LINK_ROUNDS,
  SandboxerError,
  type About,
  type Affinity,
  type Head,
  type MaxLoss,
  type NetworkPolicy,
  type OnExpiry,
  type Retention,
  type SandboxRecord,
} from "@sandboxer/protocol";
import type { ManagerContext } from "../context.ts";
import { describeLive, describeStored } from "../observing/describe.ts";
import { noteExpiry } from "./expire.ts";
import { expiresAt, ttlWithin } from "./time-to-live.ts";
import type { LiveSandbox, SandboxFacts } from "../live-sandbox.ts";
import { claimStored } from "../ownership/claim-stored.ts";
import { promiseNeedsCheckpoints } from "./plan.ts";
import { checkEpoch, runningSandbox } from "../running.ts";
import { inStore, storedFacts } from "../stored-facts.ts";

export interface Amendments {
  readonly name?: string | null | undefined;
  readonly labels?: Readonly<Record<string, string>> | undefined;
  readonly idleTimeoutMs?: number | undefined;
  /** A lifetime that begins now; null: none, or the profile's. */
  readonly ttl?: string | null | undefined;
  readonly on_expiry?: OnExpiry | undefined;
  /** The expiry time itself, or null for none; not together with `ttl`. */
  readonly expires_at?: string | null | undefined;
  /** Null: removes max_loss. */
  readonly max_loss?: MaxLoss | null | undefined;
  /** Null: the server's default. */
  readonly retention?: Retention | null | undefined;
  /** Null: any server. */
  readonly affinity?: Affinity | null | undefined;
  readonly public_ports?: readonly number[] | undefined;
  readonly network?: NetworkPolicy | undefined;
  /** A port whose signed links no longer work. */
  readonly withdraw_links?: number | undefined;
}

/** Changes the name, labels and lifetime of a sandbox; a paused sandbox stays paused. */
export function amendSandbox(
  context: ManagerContext,
  sandboxId: string,
  epoch: number | undefined,
  amendments: Amendments,
): Promise<SandboxRecord> {
  return context.taking.run(sandboxId, async () => {
    if (!context.sandboxes.has(sandboxId)) {
      const head = await context.storedHead(sandboxId);
      if (head?.state === "parked") return amendStored(context, sandboxId, head, epoch, amendments);
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
  const claimed = await claimStored(context, sandboxId);
  const holding = { id: sandboxId, epoch: claimed.epoch };
  try {
    const next = amended(context, storedFacts(sandboxId, claimed), amendments);
    await ownership.update(holding, changedBy(next));
    noteExpiry(context, sandboxId, next.about);
  } finally {
    await ownership.release(holding);
  }
  return describeStored(context, sandboxId, (await ownership.read(sandboxId)) ?? head);
}

/** In the head first: the next server would not know a change that is not stored. */
async function amendLive(context: ManagerContext, sandbox: LiveSandbox, amendments: Amendments): Promise<void> {
  sandbox.checkRunning();
  const next = amended(context, sandbox.facts, amendments);
  const { network } = amendments;
  const before = sandbox.facts.spec.network;
  // First, because it may be refused; a change that cannot be stored is taken back.
  if (network !== undefined) await sandbox.network?.use(network);
  try {
    await context.durable.ownership.update(sandbox, changedBy(next));
  } catch (error) {
    if (network !== undefined) await sandbox.network?.use(before).catch(() => {});
    throw error;
  }
  const { about, labels, idleTimeoutMs, spec } = next;
  sandbox.amend({ about, labels, idleTimeoutMs, spec });
  context.events.append({ type: "sandbox.amended", sandboxId: sandbox.id, data: { ...about } });
  if (network !== undefined)
    context.events.append({ type: "network.changed", sandboxId: sandbox.id, data: { network, before } });
}

function amended(context: ManagerContext, facts: SandboxFacts, amendments: Amendments): SandboxFacts {
  const {
    name,
    labels,
    idleTimeoutMs,
    ttl,
    on_expiry,
    expires_at,
    max_loss,
    retention,
    affinity,
    public_ports,
    network,
    withdraw_links,
  } = amendments;
  if (max_loss != null && !facts.flags.enable_checkpoint) throw promiseNeedsCheckpoints();
  const about: About = {
    ...facts.about,
    ...(name === undefined ? {} : { name }),
    ...(ttl === undefined
      ? {}
      : { expires_at: expiresAt(context, ttlWithin(context, facts.about.profile, ttl ?? undefined)) }),
    ...(on_expiry === undefined ? {} : { on_expiry }),
    ...(expires_at === undefined ? {} : { expires_at }),
    ...(max_loss === undefined ? {} : { max_loss }),
    ...(retention === undefined ? {} : { retention }),
    ...(affinity === undefined ? {} : { affinity }),
    ...(public_ports === undefined ? {} : { public_ports: [...public_ports] }),
    ...(withdraw_links === undefined ? {} : { link_rounds: nextRound(facts.about, withdraw_links) }),
  };
  const spec = network === undefined ? facts.spec : { ...facts.spec, network };
  const idle = idleTimeoutMs ?? facts.idleTimeoutMs;
  return { ...facts, about, labels: labels ?? facts.labels, idleTimeoutMs: idle, spec };
}

function nextRound({ link_rounds: rounds = {} }: About, port: number): Record<string, number> {
  if (rounds[port] === undefined && Object.keys(rounds).length >= MAX_LINK_ROUNDS) {
    throw new SandboxerError("limit_reached", `Links of ${MAX_LINK_ROUNDS} ports were withdrawn already.`);
  }
  return { ...rounds, [port]: (rounds[port] ?? 0) + 1 };
}

/** The stored properties that an amendment may change. */
function changedBy(facts: SandboxFacts): Pick<ReturnType<typeof inStore>, "about" | "idle_timeout" | "spec"> {
  const { about, idle_timeout, spec } = inStore(facts);
  return { about, idle_timeout, spec };
}
