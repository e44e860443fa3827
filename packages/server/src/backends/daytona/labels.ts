import type { AcquireRequest } from "../backend.ts";

/** By these a sandbox is found again, by this process or another. */
export const LABELS = {
  key: "sandboxer.key",
  specHash: "sandboxer.spec-hash",
  owner: "sandboxer.owner",
  sandboxId: "sandboxer.sandbox-id",
  idleTtlMs: "sandboxer.idle-ttl-ms",
  /** The server process that holds it now; it changes when another takes it over. */
  instance: "sandboxer.instance",
} as const;

export type Labels = Readonly<Record<string, string>>;

/** Who makes sandboxes. */
export interface Maker {
  /** The installation: whose sandboxes may be put in order. */
  readonly owner: string;
  /** This process. */
  readonly instanceId: string;
}

export function labelsFor({ sandboxId, identity }: AcquireRequest, maker: Maker | undefined): Labels {
  const own = {
    [LABELS.sandboxId]: sandboxId,
    ...(maker === undefined ? {} : { [LABELS.owner]: maker.owner, [LABELS.instance]: maker.instanceId }),
  };
  if (identity === undefined) return own;
  return {
    ...own,
    [LABELS.key]: identity.key,
    [LABELS.specHash]: identity.specHash,
    [LABELS.owner]: identity.owner,
    [LABELS.idleTtlMs]: String(identity.idleTtlMs),
  };
}

/** What a sandbox that could be resumed carries. Those of other installations are never looked at. */
export function lookupLabels({ sandboxId, identity }: AcquireRequest): Labels {
  if (identity === undefined) return { [LABELS.sandboxId]: sandboxId };
  return { [LABELS.key]: identity.key, [LABELS.owner]: identity.owner };
}

/** Undefined when it may be kept for ever. */
export function idleTtlMsOf(labels: Labels): number | undefined {
  const text = labels[LABELS.idleTtlMs] ?? "";
  return /^\d{1,15}$/.test(text) ? Number(text) : undefined;
}

export function carries(labels: Labels, wanted: Labels): boolean {
  return Object.entries(wanted).every(([name, value]) => labels[name] === value);
}
