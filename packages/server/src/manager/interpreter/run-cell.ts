import { randomUUID } from "node:crypto";
import {
  SandboxerError,
  type CellException,
  type CellResult,
  type CellStatus,
  type ContextLanguage,
} from "@sandboxer/protocol";
import type { OutputChunk, ProcessExit } from "../../backends/backend.ts";
import type { LiveSandbox } from "../live-sandbox.ts";
import { BEHIND_BYTES } from "../processes/collect-output.ts";
import type { ManagedProcess } from "../processes/managed-process.ts";
import { SIGINT, SIGKILL } from "../processes/signals.ts";
import type { ProcessContext } from "../room-contexts.ts";
import { ContextActivity } from "./context-activity.ts";
import { frameReaderOf, requestLine } from "./languages.ts";

/** How long an interrupted cell may take to end before its interpreter is killed. */
const GRACE_MS = 5_000;

/** Node loses a signal that comes when a cell begins to wait, and bash one that comes when it starts a program. */
const LOSES_SIGNALS: ReadonlySet<ContextLanguage> = new Set(["javascript", "typescript", "bash"]);
const REPEATS = 10;
const REPEAT_MS = 200;

/** An event of a cell, with the offset after it in its interpreter's output. */
export type CellEvent = { readonly offset: number } & (
  | { readonly event: "started"; readonly executionCount: number }
  | { readonly event: "following" }
  | { readonly event: "stdout" | "stderr"; readonly text: string }
  | { readonly event: "result"; readonly result: CellResult }
  | { readonly event: "exception"; readonly exception: CellException }
  | { readonly event: "end"; readonly status: CellStatus; readonly executionCount: number; readonly exit?: ProcessExit }
);

export interface Cell {
  readonly id: string;
  readonly interpreter: ManagedProcess;
  /** Whether its time limit ended it. */
  readonly timedOut: boolean;
  readonly events: AsyncIterable<CellEvent>;
}

export interface CellRequest {
  readonly code: string;
  readonly env: Readonly<Record<string, string>>;
  readonly timeoutMs: number | undefined;
  /** Aborts when nobody reads any more. The cell continues. */
  readonly signal: AbortSignal;
}

/** Runs a cell after those before it. It is sent to its interpreter when its events are read. */
export function runCell(
  context: ProcessContext,
  sandbox: LiveSandbox,
  interpreter: ManagedProcess,
  request: CellRequest,
): Cell {
  const id = randomUUID();
  const { code, env, timeoutMs, signal } = request;
  const cell = { id, interpreter, timedOut: false, events: events() };
  return cell;

  async function* events(): AsyncGenerator<CellEvent> {
    const activity = activityOf(interpreter);
    const free = await activity.turns.take();
    const over = new AbortController();
    try {
      if (signal.aborted) return;
      // Unread output of earlier cells may come first, and is skipped. Asking for its end would cost a round trip to the
      // sandbox.
      const from = interpreter.acknowledged;
      activity.sent(id);
      const line = requestLine(languageOf(interpreter), { id, code, env });
      // An interpreter that has ended does not take it; its exit is the end of the cell.
      void interpreter.writeStdin(Buffer.from(line, "utf8")).catch(() => {});
      const reported = { processId: id, kind: "cell" as const, command: code, language: languageOf(interpreter) };
      const tellEnd = context.executions.started(sandbox, reported);
      for await (const event of follow(interpreter, { id, from, signal })) {
        if (event.event === "started" && timeoutMs !== undefined) void limit(timeoutMs, over.signal);
        if (event.event === "end") {
          over.abort();
          tellEnd({ code: event.status === "ok" ? 0 : 1, signal: undefined, outputEnd: event.offset }, cell.timedOut);
        }
        yield event;
      }
    } finally {
      over.abort();
      free();
    }
  }

  async function limit(ms: number, ended: AbortSignal): Promise<void> {
    const { clock } = context.options;
    try {
      await clock.sleep(ms, ended);
      cell.timedOut = true;
      interruptCell(interpreter);
      await clock.sleep(GRACE_MS, ended);
      await interpreter.signal(SIGKILL, "group");
    } catch {
      // It ended in time, or its sandbox ended.
    }
  }
}

/** The rest of a cell that runs, or whose output is still there. */
export async function* followCell(
  interpreter: ManagedProcess,
  { id, from, signal }: { readonly id: string; readonly from: number | undefined; readonly signal: AbortSignal },
): AsyncGenerator<CellEvent> {
  const activity = activityOf(interpreter);
  const free = await activity.turns.take();
  try {
    if (signal.aborted) return;
    const { chunks } = await interpreter.look(0);
    if (!activity.mayRun(id) && !isIn(chunks, languageOf(interpreter), id)) {
      const message = `The context does not run the cell ${id}, and no longer has its output.`;
      throw new SandboxerError("context_not_found", message, { hint: "Run the cell again." });
    }
    const start = await interpreter.startOf(from ?? 0);
    yield { event: "following", offset: start };
    yield* follow(interpreter, { id, from: start, signal, begun: from !== undefined });
  } finally {
    free();
  }
}

/** Whether the output has the end of the cell, or the cell runs at its end. */
function isIn(chunks: readonly OutputChunk[], language: ContextLanguage, id: string): boolean {
  const reader = frameReaderOf(language);
  const activity = new ContextActivity(
    () => {},
    () => frameReaderOf(language),
  );
  const ends = chunks.flatMap((chunk) => [...reader.read(chunk)]).map(({ frame }) => frame);
  for (const chunk of chunks) activity.see(chunk);
  return activity.mayRun(id) || ends.some((frame) => frame.f === "end" && frame.id === id);
}

function languageOf({ traits }: ManagedProcess): ContextLanguage {
  if (traits.context === undefined) throw new TypeError("This process is no interpreter of a context.");
  return traits.context.language;
}

function activityOf({ activity }: ManagedProcess): ContextActivity {
  if (activity === undefined) throw new TypeError("This process is no interpreter of a context.");
  return activity;
}

/** Like Ctrl-C in a terminal: also for programs that the cell has started. */
export function interruptCell(interpreter: ManagedProcess): void {
  const { activity } = interpreter;
  const cell = activity?.cell;
  const repeats = LOSES_SIGNALS.has(languageOf(interpreter)) ? REPEATS : 0;
  const send = (left: number): void => {
    void interpreter.signal(SIGINT, "group").catch(() => {});
    if (left > 0) setTimeout(() => activity?.cell === cell && send(left - 1), REPEAT_MS).unref();
  };
  activity?.interrupt(() => send(repeats));
}

interface Followed {
  readonly id: string;
  readonly from: number;
  readonly signal: AbortSignal;
  /** Whether the cell had begun before `from`. */
  readonly begun?: boolean;
}

async function* follow(
  interpreter: ManagedProcess,
  { id, from, signal, begun = false }: Followed,
): AsyncGenerator<CellEvent> {
  const reader = frameReaderOf(languageOf(interpreter), { only: id, begun });
  let isOurs = begun;
  let executionCount = 0;
  let position = from;
  /** The message of an interpreter that cannot start. */
  let tail = "";
  for await (const chunk of outputOf(interpreter, { from, signal })) {
    position = chunk.offset + chunk.data.length;
    tail = chunk.stream === "stderr" ? textOf(chunk.data) : tail;
    for (const { frame, offset } of reader.read(chunk)) {
      interpreter.activity?.note(frame);
      if (frame.f === "start") {
        isOurs = frame.id === id;
        executionCount = frame.n;
        if (isOurs) yield { event: "started", executionCount, offset };
      } else if (frame.f === "end" && frame.id === id) {
        interpreter.acknowledge(offset);
        return yield { event: "end", status: frame.status, executionCount: frame.n, offset };
      } else if (!isOurs) {
        continue;
      } else if (frame.f === "out") {
        yield { event: frame.s, text: frame.d, offset };
      } else if (frame.f === "result") {
        yield { event: "result", result: { main: frame.main, ...frame.formats }, offset };
      } else if (frame.f === "error") {
        const { name, value, traceback } = frame;
        yield { event: "exception", exception: { name, value, traceback }, offset };
      }
    }
    interpreter.acknowledge(position - BEHIND_BYTES);
  }
  if (signal.aborted || interpreter.exit === undefined) return;
  interpreter.activity?.ended();
  if (executionCount === 0 && tail !== "") yield { event: "stderr", text: tail, offset: position };
  yield { event: "end", status: "died", executionCount, exit: interpreter.exit, offset: position };
}

/** To its end; also of an interpreter that is being killed, whose last output another reader has. */
async function* outputOf(
  interpreter: ManagedProcess,
  options: { readonly from: number; readonly signal: AbortSignal },
): AsyncGenerator<OutputChunk> {
  try {
    yield* interpreter.follow(options);
  } catch (error) {
    if (interpreter.activity?.isStopping !== true) throw error;
    await interpreter.exited;
  }
}

function textOf(data: Uint8Array): string {
  return Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString("utf8");
}
