import { SandboxerError, type CellAnswer, type CellException, type CellResult } from "@sandboxer/protocol";
import type { Cell } from "../../manager/interpreter/run-cell.ts";
import type { OutputShare } from "../../manager/processes/output-budget.ts";
import { Moving } from "../../manager/processes/reader-slot.ts";
import { endOf } from "./cell-lines.ts";
import type { StreamAnswer } from "./handler.ts";
import { sendJson, WHOLE_BYTES, type SendOptions } from "./output-answer.ts";

export interface CellAnswerOptions extends SendOptions {
  readonly maxBytes: number;
  /** The memory of the response. Released when it was sent, or will not be. */
  readonly share: OutputShare;
}

/** The memory of a piece of text or a result, besides its content. */
const PIECE_BYTES = 64;

/** A whole cell in one response. */
export async function collectedCell(cell: Cell, options: CellAnswerOptions): Promise<CellAnswer | StreamAnswer> {
  const { share } = options;
  try {
    const collected = await collect(cell, options);
    if (share.heldBytes > WHOLE_BYTES) return sendJson(pieces(collected), () => share.release(), options);
    const { stdout, stderr, ...rest } = collected;
    share.release();
    return { ...rest, stdout: stdout.join(""), stderr: stderr.join("") };
  } catch (error) {
    share.release();
    throw error;
  }
}

type CollectedCell = Omit<CellAnswer, "stdout" | "stderr"> & {
  readonly stdout: readonly string[];
  readonly stderr: readonly string[];
};

async function collect(cell: Cell, { maxBytes, signal, share }: CellAnswerOptions): Promise<CollectedCell> {
  const sinceMs = performance.now();
  const texts = { stdout: [] as string[], stderr: [] as string[] };
  const results: CellResult[] = [];
  let exception: CellException | null = null;
  let room = maxBytes;
  let truncated = false;
  let offset = 0;
  const keep = async (bytes: number): Promise<boolean> => {
    const kept = bytes <= room && (await share.take(bytes + PIECE_BYTES, signal));
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
        // Included whatever its size. A cell has one; programs inside may claim any number.
        if (exception === null && (await share.take(JSON.stringify(event.exception).length, signal)))
          ({ exception } = event);
      } else if (event.event === "end") {
        const answer = { context_id: cell.interpreter.id, cell_id: cell.id, ...endOf(event, cell.timedOut) };
        return { ...answer, ...texts, results, exception, truncated, elapsed_ms: performance.now() - sinceMs };
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

/** A {@link CellAnswer} as JSON. */
function* pieces({ stdout, stderr, results, ...rest }: CollectedCell): Generator<string, void, undefined> {
  yield `${JSON.stringify(rest).slice(0, -1)},"stdout":"`;
  for (const text of stdout) yield JSON.stringify(text).slice(1, -1);
  yield '","stderr":"';
  for (const text of stderr) yield JSON.stringify(text).slice(1, -1);
  yield '","results":[';
  for (const [index, result] of results.entries()) yield `${index === 0 ? "" : ","}${JSON.stringify(result)}`;
  yield "]}";
}

/** As much text as fits. */
function cutText(text: string, bytes: number): string {
  if (Buffer.byteLength(text) <= bytes) return text;
  return Buffer.from(text, "utf8").subarray(0, bytes).toString("utf8").replace(/�$/u, "");
}
