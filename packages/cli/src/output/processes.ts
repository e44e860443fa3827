import type { ProcessRecord } from "@sandboxer/protocol";
import { formatBytes } from "./bytes.ts";
import { type Paint, paintState } from "./colour.ts";
import { shortId } from "./sandboxes.ts";
import { formatTable, visible } from "./table.ts";
import { formatAge } from "./time.ts";

const COMMAND_WIDTH = 60;

export function formatProcesses(processes: readonly ProcessRecord[], paint: Paint): string {
  const rows = processes.map((process) => [
    shortId(process.id),
    String(process.pid),
    paintState(paint, process.state) + endOf(process),
    process.pty ? "yes" : "no",
    process.output_end === null ? "-" : formatBytes(process.output_end),
    formatAge(process.started_at ?? null) || "-",
    commandOf(process),
  ]);
  return formatTable([["ID", "PID", "STATE", "TTY", "OUTPUT", "STARTED", "COMMAND"], ...rows]);
}

function endOf({ state, exit_code: exitCode, signal }: ProcessRecord): string {
  return state === "running" ? "" : ` (${signal ?? exitCode ?? "?"})`;
}

function commandOf({ command }: ProcessRecord): string {
  const text = visible(command?.join(" ") ?? "-");
  return text.length > COMMAND_WIDTH ? `${text.slice(0, COMMAND_WIDTH - 1)}…` : text;
}
