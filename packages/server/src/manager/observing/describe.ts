import {
  resourcesInMebibytes,
  sandboxRecordSchema,
  shownAffinitySchema,
  type Affinity,
  type Head,
  type SandboxRecord,
} from "@sandboxer/protocol";
import { z } from "zod";
import { recordDamaged } from "../../support/record-damage.ts";
import type { ObservingContext } from "../room-contexts.ts";
import type { AtRisk } from "../saving/unsaved-changes.ts";
import { isFrozen } from "../ownership/freeze.ts";
import type { LiveSandbox, SandboxFacts } from "../live-sandbox.ts";
import { storedFacts } from "../stored-facts.ts";
import { notFound } from "../not-found.ts";

/** The record of a sandbox that this server has. */
export function describeLive(context: ObservingContext, sandbox: LiveSandbox): SandboxRecord {
  const head = context.durable.ownership.held(sandbox.id);
  const { state } = sandbox;
  return {
    ...ofFacts(context, sandbox.facts),
    state: state === "gone" ? "stored" : state,
    frozen: isFrozen(context, sandbox),
    owner: head?.owner == null ? null : { instance_id: head.owner, url: context.options.url ?? null, here: true },
    epoch: head?.epoch ?? null,
    idle_seconds: Math.round(sandbox.idleMs(context.nowMs) / 100) / 10,
    busy_with: state === "running" ? sandbox.busyWith : null,
    executing: sandbox.executing,
    clients: sandbox.client === undefined ? 0 : 1,
    checkpoint: checkpointOf(head),
    durability: durabilityOf(sandbox.facts, head, sandbox.atRisk),
  };
}

/** The record of a sandbox from its stored head. */
export async function describeStored(context: ObservingContext, sandboxId: string, head: Head): Promise<SandboxRecord> {
  const url = head.owner === null ? undefined : await context.durable.ownership.instances.urlOf(head.owner);
  return describeHead(context, sandboxId, head, url);
}

/** As {@link describeStored}, if the owner's address is known. */
export function describeHead(
  context: ObservingContext,
  sandboxId: string,
  head: Head,
  url: string | undefined,
): SandboxRecord {
  const { owner } = head;
  const facts = storedFacts(sandboxId, head);
  const record: SandboxRecord = {
    ...ofFacts(context, facts),
    state: head.state === "deleted" ? "destroyed" : owner === null ? "stored" : "running",
    frozen: false,
    owner: owner === null ? null : { instance_id: owner, url: url ?? null, here: false },
    epoch: head.epoch,
    idle_seconds: null,
    busy_with: null,
    executing: false,
    clients: 0,
    checkpoint: checkpointOf(head),
    durability: durabilityOf(facts, head),
  };
  // Others can write to the store: one unreadable record must not hide the other sandboxes.
  const { error } = sandboxRecordSchema.safeParse(record);
  if (error !== undefined) throw recordDamaged(`${sandboxId}/metadata.json`, z.prettifyError(error));
  return record;
}

type Told = Omit<
  SandboxRecord,
  | "state"
  | "frozen"
  | "owner"
  | "epoch"
  | "idle_seconds"
  | "busy_with"
  | "executing"
  | "clients"
  | "checkpoint"
  | "durability"
>;

function ofFacts({ options }: ObservingContext, facts: SandboxFacts): Told {
  const { about, lineage, spec } = facts;
  return {
    id: facts.sandboxId,
    name: about.name,
    backend: facts.backend,
    profile: about.profile,
    image: spec.image ?? null,
    user: spec.user ?? null,
    labels: { ...facts.labels },
    key: about.key,
    spec_hash: about.spec_hash,
    network: spec.network,
    resources: resourcesInMebibytes(spec.resources),
    flags: { ...facts.flags },
    created_at: facts.createdAt,
    expires_at: about.expires_at,
    on_expiry: about.on_expiry ?? "pause",
    restart: about.restart ?? "never",
    affinity: shownAffinity(about.affinity),
    idle_timeout: facts.idleTimeoutMs / 1000,
    origin: { sandbox_id: lineage.sandbox_id, snapshot_id: lineage.snapshot ?? lineage.filesystem_snapshot },
    retention: about.retention,
    // The server's own key is not recorded with a sandbox: it may have another name tomorrow.
    encryption: options.durable.keys?.named(about.encryption) ?? about.encryption,
    public_ports: [...about.public_ports],
    placement: about.placement,
    details: {},
  };
}

/** Only what this release knows. */
function shownAffinity(affinity: Affinity | null | undefined): SandboxRecord["affinity"] {
  return affinity == null ? null : shownAffinitySchema.parse(affinity);
}

function durabilityOf(
  { about }: SandboxFacts,
  head: Head | undefined,
  risk?: Readonly<AtRisk>,
): SandboxRecord["durability"] {
  return {
    max_loss: about.max_loss,
    last_saved_at: head?.checkpoint?.created_at ?? null,
    at_risk: risk === undefined ? null : { since: risk.since, reason: risk.reason },
  };
}

function checkpointOf(head: Head | undefined): SandboxRecord["checkpoint"] {
  if (head?.checkpoint == null) return null;
  const { name, size_bytes, created_at } = head.checkpoint;
  return { name, size_bytes, created_at };
}

/** A sandbox wherever it is: here, on another server, stored, or deleted. */
export async function findSandbox(context: ObservingContext, sandboxId: string): Promise<SandboxRecord> {
  const live = context.sandboxes.get(sandboxId);
  if (live !== undefined) return describeLive(context, live);
  const head = await context.storedHead(sandboxId);
  if (head === undefined) throw notFound(sandboxId);
  return describeStored(context, sandboxId, head);
}
