import type { SandboxRecord } from "@sandboxer/client";
import type { ComponentChildren } from "preact";
import { formatBytes } from "../../format/bytes.ts";
import { formatSeconds } from "../../format/duration.ts";
import { sandboxTitle, shortId } from "../../format/names.ts";
import { nowMs } from "../../live/clock.ts";
import { usageOf } from "../../live/usage.ts";
import { Link } from "../../router.tsx";
import { Age } from "../../ui/age.tsx";
import { Badges } from "../../ui/badges.tsx";
import { Sparkline } from "../../ui/sparkline.tsx";
import { StateChip } from "../../ui/state-chip.tsx";
import { badgesOf, labelTexts, shownState } from "./filter.ts";

export interface Column {
  readonly id: string;
  readonly title: string;
  /** The sort key of the rows; absent: not sortable. */
  readonly order?: (record: SandboxRecord) => string | number;
  readonly cell: (record: SandboxRecord) => ComponentChildren;
}

const NEVER = Number.POSITIVE_INFINITY;

export const COLUMNS: readonly Column[] = [
  {
    id: "name",
    title: "Name",
    order: (record) => sandboxTitle(record).toLowerCase(),
    cell: (record) => (
      <>
        <Link to={`/sandboxes/${encodeURIComponent(record.id)}`} class="sandbox-name" title={record.id}>
          {sandboxTitle(record)}
        </Link>
        <span class="sandbox-labels">
          <Badges badges={badgesOf(record)} />
          {labelTexts(record).map((text) => (
            <span key={text} class="label">
              {text}
            </span>
          ))}
        </span>
      </>
    ),
  },
  {
    id: "state",
    title: "State",
    order: shownState,
    cell: ({ state, frozen, executing }) => (
      <>
        <StateChip state={state} frozen={frozen} />
        {executing ? <span class="busy-dot" role="img" aria-label="executing" title="executing" /> : null}
      </>
    ),
  },
  { id: "backend", title: "Backend", order: ({ backend }) => backend, cell: ({ backend }) => backend },
  {
    id: "owner",
    title: "Owner",
    order: ({ owner }) => owner?.instanceId ?? "",
    cell: ({ owner, epoch }) =>
      owner === null ? (
        "–"
      ) : (
        <span title={`${owner.instanceId}${owner.url === null ? "" : ` at ${owner.url}`}`}>
          {owner.here ? "here" : shortId(owner.instanceId)}
          {epoch === null ? null : <span class="epoch"> #{epoch}</span>}
        </span>
      ),
  },
  {
    id: "age",
    title: "Age",
    order: ({ createdAt }) => -Date.parse(createdAt),
    cell: ({ createdAt }) => <Age time={createdAt} />,
  },
  {
    id: "idle",
    title: "Idle",
    order: ({ idleSeconds }) => idleSeconds ?? -1,
    cell: ({ idleSeconds }) => (idleSeconds === null ? "–" : formatSeconds(idleSeconds)),
  },
  {
    id: "ttl",
    title: "TTL left",
    order: ({ expiresAt }) => (expiresAt === null ? NEVER : Date.parse(expiresAt)),
    cell: ({ expiresAt }) =>
      expiresAt === null ? "–" : Date.parse(expiresAt) < nowMs.value ? "over" : <Age time={expiresAt} to />,
  },
  {
    id: "memory",
    title: "Memory",
    order: ({ id }) => usageOf(id)?.at(-1) ?? -1,
    cell: ({ id }) => <Memory id={id} />,
  },
  {
    id: "checkpoint",
    title: "Checkpoint",
    order: ({ checkpoint }) => (checkpoint === null ? NEVER : -Date.parse(checkpoint.createdAt)),
    cell: ({ checkpoint }) =>
      checkpoint === null ? (
        "–"
      ) : (
        <span title={checkpoint.name}>
          <Age time={checkpoint.createdAt} />, {formatBytes(checkpoint.sizeBytes)}
        </span>
      ),
  },
];

function Memory({ id }: { readonly id: string }): ComponentChildren {
  const points = usageOf(id);
  const newest = points?.at(-1);
  if (points === undefined || newest === undefined) return "–";
  return (
    <span class="memory">
      <Sparkline points={points} />
      {formatBytes(newest)}
    </span>
  );
}

/** Sorted by a column; undefined: in the server's order, newest first. */
export function ordered(
  records: readonly SandboxRecord[],
  { by, descending }: { readonly by: string; readonly descending: boolean },
): readonly SandboxRecord[] {
  const order = COLUMNS.find(({ id }) => id === by)?.order;
  if (order === undefined) return records;
  const keyed = records.map((record) => ({ record, key: order(record) }));
  const sorted = keyed.toSorted((left, right) => compare(left.key, right.key));
  if (descending) sorted.reverse();
  return sorted.map(({ record }) => record);
}

function compare(left: string | number, right: string | number): number {
  if (typeof left === "string" && typeof right === "string") return left.localeCompare(right);
  return left < right ? -1 : left > right ? 1 : 0;
}
