import type { ProcessRecord } from "@sandboxer/client";
import type { JSX } from "preact";
import { commandLine } from "../../../actions/spellings.ts";
import { formatBytes } from "../../../format/bytes.ts";
import { shortId } from "../../../format/names.ts";
import { Link } from "../../../router.tsx";
import { Button } from "../../../ui/button.tsx";
import { TableRegion } from "../../../ui/table-region.tsx";
import { sandboxPath } from "../tabs.tsx";

export interface ProcessListProperties {
  readonly sandboxId: string;
  readonly processes: readonly ProcessRecord[];
  readonly selected: string | undefined;
  readonly onSelect: (id: string) => void;
}

export function ProcessList({ sandboxId, processes, selected, onSelect }: ProcessListProperties): JSX.Element {
  if (processes.length === 0) {
    return (
      <p class="card">
        No processes were started over HTTP. Open <Link to={sandboxPath(sandboxId)}>a terminal</Link>, or run{" "}
        <code>{commandLine("exec", "-d", sandboxId, "--", "sleep", "60")}</code>.
      </p>
    );
  }
  return (
    <TableRegion
      label="Processes that were started over HTTP, newest first"
      columns={["Command", "Process", "State", "Output", "Kind"]}
    >
      {processes.toReversed().map((process) => (
        <tr key={process.id} class={process.id === selected ? "process-selected" : undefined}>
          <td>
            <Button
              kind="quiet"
              pressed={process.id === selected}
              label={`Show ${commandText(process)}, process ${process.pid}`}
              onClick={() => onSelect(process.id)}
            >
              <span class="process-command mono">{commandText(process)}</span>
            </Button>
          </td>
          <td class="mono" title={process.id}>
            {process.pid} · {shortId(process.id)}
          </td>
          <td>
            <span class={`chip ${stateOf(process).chip}`}>{stateOf(process).text}</span>
          </td>
          <td>{formatBytes(process.outputEnd)}</td>
          <td>{[process.pty ? "terminal" : "", process.detached ? "detached" : ""].filter(Boolean).join(", ")}</td>
        </tr>
      ))}
    </TableRegion>
  );
}

/** A server that restored the sandbox does not know the command of a process. */
export function commandText({ command, pty }: ProcessRecord): string {
  if (command === null) return pty ? "(a terminal)" : "(started elsewhere)";
  const text = command.join(" ");
  return text.length > 200 ? `${text.slice(0, 200)}…` : text;
}

export function stateOf({ state, exitCode, signal }: ProcessRecord): { readonly text: string; readonly chip: string } {
  if (state === "running") return { text: "running", chip: "chip-running" };
  if (signal !== null) return { text: `ended by ${signal}`, chip: "chip-failed" };
  return { text: `exit code ${exitCode}`, chip: exitCode === 0 ? "" : "chip-failed" };
}
