export type RequestKind = "read" | "look" | "conditional write" | "write" | "list" | "delete";

/** One request to a store, as its server or its file system receives it. */
export interface TracedRequest {
  readonly kind: RequestKind;
  /** As in `ObjectStore`; "" if the request does not have it. */
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
 * Leaves out the requests of an idle server: its renewals, its looks at the others, and at its own bell. A server that
 * waits for a sandbox reads the owner's record too; those reads follow no list.
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
