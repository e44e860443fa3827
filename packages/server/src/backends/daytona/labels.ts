import type { AcquireRequest } from "../backend.ts";

/** By these a sandbox is found again, by this process or another. */
export const LABELS = {
  key: "sandboxer.key",
  specHash: "sandboxer.spec-hash",
  owner: "sandboxer.owner",
  sandboxId: "sandboxer.sandbox-id",
} as const;

export type Labels = Readonly<Record<string, string>>;

export function labelsFor({ sandboxId, identity }: AcquireRequest): Labels {
  const own = { [LABELS.sandboxId]: sandboxId };
  if (identity === undefined) return own;
  return { ...own, [LABELS.key]: identity.key, [LABELS.specHash]: identity.specHash, [LABELS.owner]: identity.owner };
}

/** What a sandbox that could be resumed carries. Those of other installations are never looked at. */
export function lookupLabels({ sandboxId, identity }: AcquireRequest): Labels {
  if (identity === undefined) return { [LABELS.sandboxId]: sandboxId };
  return { [LABELS.key]: identity.key, [LABELS.owner]: identity.owner };
}

export function carries(labels: Labels, wanted: Labels): boolean {
  return Object.entries(wanted).every(([name, value]) => labels[name] === value);
}
