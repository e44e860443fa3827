import type { CellLine, CellTable as WireTable, CellResult as WireResult } from "@sandboxer/protocol";
import type { Camel } from "../wire/naming.ts";

/** The first rows of a data frame. */
export type CellTable = Camel<WireTable>;

/** One value in all formats that it has. Programs in the sandbox chose them: treat every one as untrusted data. */
export type CellResult = Omit<WireResult, "table"> & { readonly table?: CellTable };

/** An exception that ended a cell. */
export type CellError = { readonly name: string; readonly value: string; readonly traceback: string };

export type CellStatus = Extract<CellLine, { event: "end" }>["status"];

/** An event of a running cell. */
export type CellEvent =
  | {
      readonly type: "started";
      readonly contextId: string;
      readonly cellId: string;
      readonly executionCount: number;
      /** Whether the interpreter was just started, without variables. */
      readonly fresh: boolean;
    }
  | { readonly type: "stdout" | "stderr"; readonly text: string; readonly time: Date }
  | { readonly type: "result"; readonly result: CellResult }
  | { readonly type: "error"; readonly error: CellError }
  | {
      readonly type: "end";
      readonly status: CellStatus;
      readonly executionCount: number;
      readonly timedOut: boolean;
      /** The exit code of an interpreter that died. */
      readonly exitCode: number | null;
      readonly signal: string | null;
    };

/** A cell with all its output. */
export interface CellExecution {
  readonly contextId: string;
  readonly cellId: string;
  readonly executionCount: number;
  readonly status: CellStatus;
  readonly stdout: string;
  readonly stderr: string;
  readonly results: readonly CellResult[];
  /** The text of the last expression's value. */
  readonly text: string | undefined;
  /** An exception of the code. Failures of the call itself are thrown. */
  readonly error: CellError | undefined;
  /** There was more output than `maxOutputBytes`. */
  readonly truncated: boolean;
  readonly timedOut: boolean;
}
