import type { CellLine, CellResult as WireResult } from "@sandboxer/protocol";
import { SandboxerError } from "@sandboxer/protocol/errors";
import { errorOfFields } from "../wire/errors.ts";
import { readJsonLines } from "../wire/json-lines.ts";
import type { CellEvent, CellResult } from "./cell-types.ts";

/** Where a cell that moves with its sandbox continues. */
export interface MovedCell {
  readonly contextId: string;
  readonly cellId: string;
  readonly offset: number;
}

/** The events of a response. Returns where the cell continues if its sandbox is saved or moved meanwhile. */
export async function* cellEvents(body: ReadableStream<Uint8Array>): AsyncGenerator<CellEvent, MovedCell | undefined> {
  for await (const line of readJsonLines<CellLine>(body)) {
    switch (line.event) {
      case "moving":
        return { contextId: line.context_id, cellId: line.cell_id, offset: line.offset };
      case "error":
        throw errorOfFields(line);
      case "following":
        break;
      case "started": {
        const { context_id: contextId, cell_id: cellId, execution_count: executionCount, fresh } = line;
        yield { type: "started", contextId, cellId, executionCount, fresh };
        break;
      }
      case "result":
        yield { type: "result", result: resultOf(line.result) };
        break;
      case "exception": {
        const { name, value, traceback } = line;
        yield { type: "error", error: { name, value, traceback } };
        break;
      }
      case "end": {
        const { status, execution_count: executionCount, timed_out: timedOut, exit_code: exitCode, signal } = line;
        yield { type: "end", status, executionCount, timedOut, exitCode, signal };
        return undefined;
      }
      default:
        yield { type: line.event, text: line.data, time: new Date(line.time) };
    }
  }
  throw new SandboxerError("server_unreachable", "The connection was lost before the end of the cell.", {
    hint: "The cell may still run: `contexts()` says whether its context is busy.",
  });
}

function resultOf({ table, ...result }: WireResult): CellResult {
  if (table === undefined) return result;
  const { row_count: rowCount, column_count: columnCount, columns, rows } = table;
  return { ...result, table: { columns, rows, rowCount, columnCount } };
}
