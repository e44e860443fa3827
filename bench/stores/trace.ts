export type RequestKind = "read" | "look" | "conditional write" | "write" | "list" | "delete";

/** One request to a store, as its server or its file system gets to see it. */
export interface TracedRequest {
  readonly kind: RequestKind;
  /** As in `ObjectStore`; "" where the request does not say it. */
  readonly key: string;
}

/** The requests of one server to its store so far. */
export interface StoreTrace {
  requests(): readonly TracedRequest[];
}

export function countByKind(requests: readonly TracedRequest[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const { kind } of requests) counts[kind] = (counts[kind] ?? 0) + 1;
  return counts;
}

/**
 * Without what a server does whether or not anybody works with it: its renewals, its looks at the others, and at its own
 * bell. Whoever waits for a sandbox looks at the owner's record too; those looks follow no list.
 */
export function withoutHousekeeping(all: readonly TracedRequest[]): TracedRequest[] {
  const ownRecord =
    all.find(({ kind, key }) => kind === "conditional write" && key.startsWith("instances/"))?.key ?? "";
  const ownBell = ownRecord.replace("instances/", "bells/");
  const looked = new Set<string>();
  return all.filter(({ kind, key }) => {
    if (key === ownRecord || key === ownBell) return false;
    const ofInstances = key.replace(/\/$/, "") === "instances" || key.startsWith("instances/");
    if (ofInstances && kind === "list") {
      looked.clear();
      return false;
    }
    if (!ofInstances || kind !== "read" || looked.has(key)) return true;
    looked.add(key);
    return false;
  });
}
