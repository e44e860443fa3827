import type { AcquireRequest } from "../backend.ts";

/** Labels by which a sandbox is found again, by this process or another. */
export const LABELS = {
  key: "sandboxer.key",
  specHash: "sandboxer.spec-hash",
  owner: "sandboxer.owner",
  sandboxId: "sandboxer.sandbox-id",
  idleTtlMs: "sandboxer.idle-ttl-ms",
  /** The server process that holds it now; it changes with a handoff. */
  instance: "sandboxer.instance",
} as const;

export type Labels = Readonly<Record<string, string>>;

/** The server that creates sandboxes. */
export interface Maker {
  /** The installation, for recovery. */
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

/** The labels of a sandbox that could be resumed. Those of other installations are ignored. */
export function lookupLabels({ sandboxId, identity }: AcquireRequest): Labels {
  if (identity === undefined) return { [LABELS.sandboxId]: sandboxId };
  return { [LABELS.key]: identity.key, [LABELS.owner]: identity.owner };
}

/** Undefined if it may be kept forever. */
export function idleTtlMsOf(labels: Labels): number | undefined {
  const text = labels[LABELS.idleTtlMs] ?? "";
  return /^\d{1,15}$/.test(text) ? Number(text) : undefined;
}

export function carries(labels: Labels, wanted: Labels): boolean {
  return Object.entries(wanted).every(([name, value]) => labels[name] === value);
}
