import type { DamagedSandbox, SandboxRecord } from "@sandboxer/protocol";
import { formatKeep } from "@sandboxer/protocol/keep-text";
import { networkText } from "@sandboxer/protocol/network-text";
import { stateWord } from "@sandboxer/protocol/state-word";
import { formatBytes } from "./bytes.ts";
import { encryptionText } from "./encryption.ts";
import { type Paint, paintState } from "./colour.ts";
import { formatFields, formatTable, visible } from "./table.ts";
import { formatAge, formatSeconds } from "./time.ts";

/** The first eight digits of an id are enough to name it. */
export function shortId(id: string): string {
  return id.slice(0, 8);
}

/** The display name. */
export function nameOf({ id, name }: { readonly id: string; readonly name: string | null }): string {
  return name ?? shortId(id);
}

export function formatSandboxes(
  sandboxes: readonly SandboxRecord[],
  paint: Paint,
  damaged: readonly DamagedSandbox[] = [],
): string {
  const rows = sandboxes.map((sandbox) => [
    shortId(sandbox.id),
    visible(sandbox.name ?? "-"),
    paintState(paint, stateWord(sandbox.state)) + notes(sandbox),
    sandbox.backend,
    formatAge(sandbox.created_at),
    formatAge(sandbox.expires_at) || "-",
    ownerOf(sandbox),
  ]);
  const unreadable = damaged.map(({ id }) => [shortId(id), "-", paintState(paint, "damaged"), "-", "-", "-", "-"]);
  return formatTable([["ID", "NAME", "STATE", "BACKEND", "CREATED", "EXPIRES", "SERVER"], ...rows, ...unreadable]);
}

export function formatSandbox(sandbox: SandboxRecord): string {
  const { checkpoint, durability, retention, origin, placement, flags, resources } = sandbox;
  return formatFields({
    id: sandbox.id,
    name: sandbox.name,
    state: stateWord(sandbox.state) + notes(sandbox),
    backend: sandbox.backend,
    profile: sandbox.profile,
    image: sandbox.image,
    user: sandbox.user,
    key: sandbox.key,
    labels: pairs(sandbox.labels),
    network: networkText(sandbox.network),
    resources: pairs(resources),
    flags: pairs(flags),
    server: ownerOf(sandbox),
    epoch: sandbox.epoch,
    created: `${sandbox.created_at} (${formatAge(sandbox.created_at)})`,
    expires:
      sandbox.expires_at && `${sandbox.expires_at} (${formatAge(sandbox.expires_at)}), then ${sandbox.on_expiry}`,
    idle: sandbox.idle_seconds === null ? null : `${formatSeconds(sandbox.idle_seconds)} of ${sandbox.idle_timeout} s`,
    "busy with": sandbox.busy_with === null || sandbox.busy_with.length === 0 ? null : sandbox.busy_with.join(", "),
    executing: sandbox.executing ? "yes" : "no",
    clients: sandbox.clients,
    checkpoint:
      checkpoint && `${checkpoint.name}, ${formatBytes(checkpoint.size_bytes)}, ${formatAge(checkpoint.created_at)}`,
    "max loss": durability.max_loss === null ? null : lossText(durability.max_loss),
    restart: sandbox.restart === "always" ? "always" : null,
    "requires servers with": pairs(sandbox.affinity?.require ?? {}),
    "prefers servers with": pairs(sandbox.affinity?.prefer ?? {}),
    "checkpoint retention": retention?.checkpoints && formatKeep(retention.checkpoints),
    "snapshot retention": retention?.snapshots && formatKeep(retention.snapshots),
    "encrypted with": encryptionText(sandbox.encryption),
    "at risk": durability.at_risk && `since ${durability.at_risk.since}: ${durability.at_risk.reason}`,
    "created from": origin.snapshot_id === null ? origin.sandbox_id : `snapshot ${origin.snapshot_id}`,
    placement: placement && `${placement.backend} (${placement.strategy}): ${placement.reason}`,
    ...sandbox.details,
  });
}

function notes({ frozen, durability }: SandboxRecord): string {
  return (frozen ? " (frozen)" : "") + (durability.at_risk === null ? "" : " (at risk)");
}

function lossText(maxLoss: string | number): string {
  return typeof maxLoss === "string" ? maxLoss : `${maxLoss} execution${maxLoss === 1 ? "" : "s"}`;
}

function ownerOf({ owner }: SandboxRecord): string {
  if (owner === null) return "-";
  return owner.here ? "this one" : (owner.url ?? owner.instance_id);
}

export function pairs(record: Readonly<Record<string, unknown>>): string {
  return Object.entries(record)
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => `${name}=${String(value)}`)
    .join(" ");
}
