import { createHash } from "node:crypto";
import type { Head } from "@sandboxer/protocol";
import { entryKey, placeOf, viewOf } from "../store/index/index-names.ts";

/** Views of sandboxes in the index of a store. The first four have one member for each state, or for all. */
export const sandboxViews = {
  all: "all",
  deleted: "deleted",
  running: "running",
  paused: "paused",
  /** Sandboxes whose head cannot be read, by their id alone. */
  unreadable: "unreadable",
  /** Sandboxes that are deleted at the end of their lifetime. */
  expiring: "expiring",
  /** Sandboxes that another server resumes if theirs dies. */
  restarting: "restarting",
  /** Sandboxes that were created from a snapshot, or rewound to it. */
  from: (snapshotId: string): string => viewOf("from", snapshotId),
  owner: (instanceId: string): string => viewOf("owner", instanceId),
  key: (key: string): string => viewOf("key", key),
  name: (name: string): string => viewOf("name", name),
  backend: (backend: string): string => viewOf("backend", backend),
  /** `key` or `key=value`. */
  label: (label: string): string => viewOf("label", label),
};

/**
 * The entries that a head needs. An entry that one server adds must never be one that another removes late:
 *
 * - `all` and `deleted` change once, because a deletion is final;
 * - entries that depend on the owner end in the epoch: within one, a sandbox only goes from its owner to none;
 * - entries that depend on other details end in the head's `index_tag`, which is new whenever one of them changes.
 */
export function entriesOf(sandboxId: string, head: Head): readonly string[] {
  const place = placeOf(head.createdAt, sandboxId);
  if (head.state === "deleted") return [entryKey(sandboxViews.deleted, place)];
  const byOwner = head.owner === null ? [sandboxViews.paused] : [sandboxViews.running, sandboxViews.owner(head.owner)];
  return [
    entryKey(sandboxViews.all, place),
    ...byOwner.map((view) => entryKey(view, place, head.epoch)),
    ...detailViews(head).map((view) => entryKey(view, place, head.index_tag ?? "0")),
  ];
}

function detailViews(head: Head): readonly string[] {
  const { name, key, labels, backend, expires, restarts, snapshot } = indexedDetails(head);
  return [
    sandboxViews.backend(backend),
    ...(key === null ? [] : [sandboxViews.key(key)]),
    ...(name === null ? [] : [sandboxViews.name(name)]),
    ...(snapshot === null ? [] : [sandboxViews.from(snapshot)]),
    ...(expires ? [sandboxViews.expiring] : []),
    ...(restarts ? [sandboxViews.restarting] : []),
    ...new Set(labels.flatMap(([label, value]) => [label, `${label}=${value}`]).map(sandboxViews.label)),
  ];
}

/** The tag of the next version of a head: a new one if its entries change. */
export function nextTag(before: Head, next: Head, nonce: string): string {
  const isSame = JSON.stringify(indexedDetails(before)) === JSON.stringify(indexedDetails(next));
  return isSame && before.index_tag !== undefined ? before.index_tag : tagOf(nonce);
}

/** Nonces of one server differ only at their end. */
export function tagOf(nonce: string): string {
  return createHash("sha256").update(nonce).digest("hex").slice(0, 12);
}

/** Everything that views of details depend on. */
function indexedDetails({ about, backend, spec, lineage }: Head) {
  const { labels } = spec;
  const words = typeof labels === "object" && labels !== null ? Object.entries(labels) : [];
  return {
    backend,
    key: about?.key ?? null,
    name: about?.name ?? null,
    snapshot: lineage.snapshot ?? null,
    expires: about?.on_expiry === "delete" && about.expires_at !== null,
    restarts: about?.restart === "always",
    labels: words.filter((entry): entry is [string, string] => typeof entry[1] === "string"),
  };
}

/** Whether an entry can never be needed again, whoever still writes to the head. */
export function isVoid(view: string, suffix: string, head: Head): boolean {
  if (head.state === "deleted") return view !== sandboxViews.deleted;
  const hasOwnerView = view === sandboxViews.running || view.startsWith("owner-");
  if (!hasOwnerView && view !== sandboxViews.paused) return false;
  const epoch = Number(suffix);
  return epoch < head.epoch || (epoch === head.epoch && hasOwnerView && head.owner === null);
}
