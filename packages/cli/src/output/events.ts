import type { EventRecord, OperationRecordBody } from "@sandboxer/protocol";
import { formatBytes } from "./bytes.ts";
import { shortId } from "./sandboxes.ts";
import { visible } from "./table.ts";
import { formatMs } from "./time.ts";

const TYPE_WIDTH = 20;

/** One event per line: time, type, sandbox, and details. */
export function formatEvent({ time, type, sandbox_id: sandbox, data }: EventRecord): string {
  const which = sandbox === null ? "-".padEnd(8) : shortId(sandbox);
  const what = type.startsWith("operation.") ? formatBrief(data) : formatData(data);
  return `${`${time}  ${visible(type).padEnd(TYPE_WIDTH)}  ${which}  ${what}`.trimEnd()}\n`;
}

/** `sandboxer operations` has the rest. */
function formatBrief({ id, kind, state, elapsed_ms, error }: Readonly<Record<string, unknown>>): string {
  return formatData({ kind, state, ms: typeof elapsed_ms === "number" ? Math.round(elapsed_ms) : null, error, id });
}

export function formatData(data: Readonly<Record<string, unknown>>): string {
  return Object.entries(data)
    .filter(([, value]) => value !== null && value !== undefined)
    .map(([name, value]) => `${name}=${visible(typeof value === "string" ? value : JSON.stringify(value))}`)
    .join(" ");
}

/** An operation with the time of each of its phases. */
export function formatOperation(operation: OperationRecordBody): string {
  const { kind, state, phase, phases, done_bytes, total_bytes, elapsed_ms, error } = operation;
  const times = Object.entries(phases).map(([name, milliseconds]) => `${name} ${formatMs(milliseconds)}`);
  return [
    `${kind} ${state}`,
    formatMs(elapsed_ms),
    state === "running" && phase !== null ? `now: ${phase}` : "",
    done_bytes === null
      ? ""
      : formatBytes(done_bytes) + (total_bytes === null ? "" : ` of ${formatBytes(total_bytes)}`),
    times.join(", "),
    error === null ? "" : `${error.code}: ${visible(error.message)}`,
  ]
    .filter((part) => part !== "")
    .join("; ");
}
