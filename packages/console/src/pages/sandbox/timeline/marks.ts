import type { EventRecord, OperationRecord } from "@sandboxer/client";
import { formatBytes } from "../../../format/bytes.ts";
import { formatMilliseconds } from "../../../format/duration.ts";
import { operationTitle } from "../../../format/operation.ts";
import { shortId } from "../../../format/names.ts";

export const MARK_KINDS = ["execution", "operation", "saved", "place", "other"] as const;
export type MarkKind = (typeof MARK_KINDS)[number];

/** Something that happened to a sandbox, at a moment or for a while. */
export interface Mark {
  readonly id: string;
  readonly kind: MarkKind;
  readonly title: string;
  /** Its result, size and the like; may be empty. */
  readonly outcome: string;
  readonly startMs: number;
  /** Undefined while it lasts. For a moment, its start. */
  readonly endMs: number | undefined;
  readonly failed: boolean;
  /** As received from the server. */
  readonly data: Readonly<Record<string, unknown>>;
  readonly operation?: OperationRecord;
  readonly processId?: string;
}

/** The marks, oldest first. For states see bandsOf. */
export function marksOf(events: readonly EventRecord[], operations: readonly OperationRecord[]): readonly Mark[] {
  const marks = operations.map(operationMark);
  const running = new Map<string, Mark>();
  const frozen: Mark[] = [];
  for (const event of events) {
    const { type } = event;
    if (type.startsWith("operation.") || type === "sandbox.state") continue;
    if (type.startsWith("execution.")) noteExecution(event, running, marks);
    else if (type === "sandbox.frozen") frozen.push(momentMark(event, "place", "Frozen"));
    else if (type === "sandbox.thawed") marks.push(thawed(event, frozen.pop()));
    else marks.push(eventMark(event));
  }
  // Marks without an end yet.
  for (const mark of [...running.values(), ...frozen]) marks.push({ ...mark, endMs: undefined });
  return marks.toSorted((a, b) => a.startMs - b.startMs);
}

function operationMark(operation: OperationRecord): Mark {
  const { id, kind, state, startedAt, elapsedMs, pausedMs, error } = operation;
  const startMs = Date.parse(startedAt);
  const ended = pausedMs === null ? "done" : `paused for ${formatMilliseconds(pausedMs)}`;
  return {
    id: `operation:${id}`,
    kind: "operation",
    title: operationTitle(kind),
    outcome: state === "running" ? "" : (error?.code ?? ended),
    startMs,
    endMs: state === "running" ? undefined : startMs + elapsedMs,
    failed: state === "failed",
    data: {},
    operation,
  };
}

/** A program has events when it starts, when it came from another server, and when it ends or leaves. */
function noteExecution(event: EventRecord, running: Map<string, Mark>, marks: Mark[]): void {
  const { type, data } = event;
  const processId = text(data["process_id"]);
  const begun = running.get(processId);
  if (type !== "execution.ended") {
    if (begun !== undefined) marks.push(begun);
    const title = type === "execution.continued" ? `continued: ${shortId(processId)}` : text(data["command"]);
    running.set(processId, { ...momentMark(event, "execution", title), processId });
    return;
  }
  running.delete(processId);
  const endMs = Date.parse(event.time);
  const startMs = begun?.startMs ?? endMs - number(data["elapsed_ms"]);
  const left = data["outcome"] === "left";
  marks.push({
    ...momentMark(event, "execution", begun?.title ?? shortId(processId), endMs),
    id: begun?.id ?? event.cursor,
    startMs,
    processId,
    outcome: left ? "left this server" : exitText(data),
    failed: !left && (data["exit_code"] !== 0 || data["timed_out"] === true),
    data: { ...begun?.data, ...data },
  });
}

function exitText(data: EventRecord["data"]): string {
  const how = data["signal"] == null ? `exit ${text(data["exit_code"])}` : text(data["signal"]);
  return data["timed_out"] === true ? `${how}, timed out` : how;
}

function thawed(event: EventRecord, frozen: Mark | undefined): Mark {
  const endMs = Date.parse(event.time);
  const forMs = number(event.data["frozen_ms"]);
  return {
    ...momentMark(event, "place", "Frozen", endMs),
    id: frozen?.id ?? event.cursor,
    startMs: frozen?.startMs ?? endMs - forMs,
    outcome: formatMilliseconds(forMs),
    failed: true,
    data: { ...frozen?.data, ...event.data },
  };
}

function eventMark(event: EventRecord): Mark {
  const { type, data } = event;
  const size = typeof data["size_bytes"] === "number" ? formatBytes(data["size_bytes"]) : "";
  const name = text(data["name"]) || shortId(text(data["snapshot_id"]));
  switch (type) {
    case "checkpoint.created":
      return checkpointMark(event, size);
    case "durability.at_risk":
      return { ...momentMark(event, "saved", "max_loss not met"), outcome: text(data["reason"]), failed: true };
    case "durability.restored":
      return momentMark(event, "saved", "max_loss met again");
    case "snapshot.created":
      return { ...momentMark(event, "saved", `Snapshot ${name}`), outcome: size };
    case "snapshot.proven":
      return { ...momentMark(event, "saved", `Test restore of ${name} succeeded`), outcome: text(data["engine"]) };
    case "snapshot.unproven":
      return {
        ...momentMark(event, "saved", `Test restore of ${name} failed`),
        outcome: text(data["reason"]),
        failed: true,
      };
    case "store.damaged": {
      const what = data["snapshot_id"] === null ? "Its checkpoints are damaged" : `Snapshot ${name} is damaged`;
      return { ...momentMark(event, "saved", what), outcome: text(data["problem"]), failed: true };
    }
    case "snapshot.changed":
      return momentMark(event, "saved", `Snapshot ${name} named or labelled`);
    case "snapshot.deleted":
      return momentMark(event, "saved", `Snapshot ${name} deleted`);
    case "sandbox.handed_over":
      return momentMark(event, "place", `Handed off to ${text(data["to"])}`);
    case "sandbox.taken_over":
      return takenOver(event);
    case "sandbox.restored":
      return momentMark(event, "place", `Restored from ${name}`);
    case "sandbox.rewound":
      return momentMark(event, "place", `Rewound to ${name}`);
    case "sandbox.resumed":
      return momentMark(event, "place", "Resumed");
    case "sandbox.moved":
      return momentMark(event, "place", "Moved from another backend");
    case "sandbox.failed":
      return { ...momentMark(event, "place", "Failed"), outcome: text(data["reason"]), failed: true };
    default:
      return momentMark(event, "other", type);
  }
}

function checkpointMark(event: EventRecord, size: string): Mark {
  const { left_running, paused_ms } = event.data;
  if (left_running !== true) return { ...momentMark(event, "saved", "Checkpoint"), outcome: size };
  const paused = typeof paused_ms === "number" ? `, paused for ${formatMilliseconds(paused_ms)}` : "";
  return { ...momentMark(event, "saved", "Checkpoint while running"), outcome: size + paused };
}

/** The pause ended with the first run here. */
function takenOver(event: EventRecord): Mark {
  const pausedMs = event.data["paused_ms"];
  const mark = momentMark(event, "place", `Resumed from ${text(event.data["from"])}`);
  if (typeof pausedMs !== "number") return mark;
  return { ...mark, startMs: mark.startMs - pausedMs, outcome: `paused for ${formatMilliseconds(pausedMs)}` };
}

function momentMark(
  { cursor, time, data }: EventRecord,
  kind: MarkKind,
  title: string,
  endMs = Date.parse(time),
): Mark {
  return { id: cursor, kind, title, outcome: "", startMs: Date.parse(time), endMs, failed: false, data };
}

/** Data from the server may be anything: only texts and numbers are shown as such. */
function text(value: unknown): string {
  return typeof value === "string" || typeof value === "number" ? String(value) : "";
}

function number(value: unknown): number {
  return typeof value === "number" ? value : 0;
}
