import { SandboxerError, type CellAnswer, type CellException, type CellResult } from "@sandboxer/protocol";
import type { Cell } from "../../manager/interpreter/run-cell.ts";
import type { OutputShare } from "../../manager/processes/output-budget.ts";
import { Moving } from "../../manager/processes/reader-slot.ts";
import { endOf } from "./cell-lines.ts";

export interface CellAnswerOptions {
  readonly maxBytes: number;
  readonly signal: AbortSignal;
  /** The memory of the response. */
  readonly share: OutputShare;
}

/** A whole cell in one response. */
export async function collectedCell(cell: Cell, { maxBytes, signal, share }: CellAnswerOptions): Promise<CellAnswer> {
  const sinceMs = performance.now();
  const texts = { stdout: [] as string[], stderr: [] as string[] };
  const results: CellResult[] = [];
  let exception: CellException | null = null;
  let room = maxBytes;
  let truncated = false;
  let offset = 0;
  const keep = async (bytes: number): Promise<boolean> => {
    const kept = bytes <= room && (await share.take(bytes, signal));
    if (kept) room -= bytes;
    else truncated = true;
    return kept;
  };
  try {
    for await (const event of cell.events) {
      ({ offset } = event);
      if (event.event === "stdout" || event.event === "stderr") {
        const text = truncated ? "" : cutText(event.text, room);
        if (text.length < event.text.length) truncated = true;
        if (text !== "" && (await keep(Buffer.byteLength(text)))) texts[event.event].push(text);
      } else if (event.event === "result") {
        if (await keep(JSON.stringify(event.result).length)) results.push(event.result);
      } else if (event.event === "exception") {
        ({ exception } = event);
      } else if (event.event === "end") {
        const answer = { context_id: cell.interpreter.id, cell_id: cell.id, ...endOf(event, cell.timedOut) };
        const output = { stdout: texts.stdout.join(""), stderr: texts.stderr.join(""), results, exception, truncated };
        return { ...answer, ...output, elapsed_ms: performance.now() - sinceMs };
      }
    }
  } catch (error) {
    if (!(error instanceof Moving)) throw error;
    const { id: cell_id, interpreter } = cell;
    throw new SandboxerError("wrong_state", "The sandbox is being saved or moved, and the cell with it.", {
      hint: "Resume the sandbox, then follow the cell with GET …/contexts/{context_id}/cells/{cell_id}.",
      details: { state: "saving", context_id: interpreter.id, cell_id, offset },
    });
  }
  throw new SandboxerError("timeout", "The client disconnected before the end of the cell.");
}

/** As much text as fits. */
function cutText(text: string, bytes: number): string {
  if (Buffer.byteLength(text) <= bytes) return text;
  return Buffer.from(text, "utf8").subarray(0, bytes).toString("utf8").replace(/�$/u, "");
}
