import type { ExecLine } from "@sandboxer/protocol";
import type { SandboxCalls } from "@sandboxer/client/transport";
import { errorOfFields } from "@sandboxer/client/transport";
import type { OutputWindow } from "./output-window.ts";

/** How a process ended; undefined while it runs. */
export type Exit = Extract<ExecLine, { event: "exit" }>;

export interface ReadOutputOptions {
  /** 0: only what is there. */
  readonly waitMs: number;
  /** Until when: the end of the process, or some output that is followed by silence. */
  readonly until: "end" | "output";
  readonly signal: AbortSignal;
}

/** How long a program may be silent before its output counts as complete for now. */
const SETTLE_MS = 100;

/**
 * Reads output of a process into a window, until its end, the wait is over or the window is full. Returns how it ended;
 * undefined: it still runs, or the sandbox is being saved.
 */
export async function readOutput(
  calls: SandboxCalls,
  processId: string,
  window: OutputWindow,
  { waitMs, until, signal }: ReadOutputOptions,
): Promise<Exit | undefined> {
  const enough = new AbortController();
  const stopAfter = (ms: number): NodeJS.Timeout => setTimeout(() => enough.abort(), ms);
  const deadline = waitMs > 0 ? stopAfter(waitMs) : undefined;
  let settled: NodeJS.Timeout | undefined;
  const onOutput = (): void => {
    if (until === "end" || window.isEmpty) return;
    clearTimeout(settled);
    settled = stopAfter(SETTLE_MS);
  };
  const query = { offset: window.position, encoding: "base64" as const, ...(waitMs > 0 ? { follow: true } : {}) };
  const input = { params: { id: calls.sandboxId, process_id: processId }, query };
  try {
    return await calls.read("processOutput", input, { signal: AbortSignal.any([signal, enough.signal]) }, (response) =>
      readLines(response, window, onOutput),
    );
  } catch (error) {
    if (enough.signal.aborted && !signal.aborted) return undefined;
    throw error;
  } finally {
    clearTimeout(deadline);
    clearTimeout(settled);
  }
}

async function readLines(response: Response, window: OutputWindow, onOutput: () => void): Promise<Exit | undefined> {
  let rest = "";
  for await (const text of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
    const lines = (rest + text).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) {
      const end = takeLine(JSON.parse(line) as ExecLine, window);
      if (end === "running" || window.isFull) return undefined;
      if (end !== undefined) return end;
    }
    onOutput();
  }
  return undefined;
}

/** Undefined: further lines follow. */
function takeLine(line: ExecLine, window: OutputWindow): Exit | "running" | undefined {
  switch (line.event) {
    case "started":
      window.skipTo(line.offset);
      return undefined;
    case "stdout":
    case "stderr":
      window.add(Buffer.from(line.data, "base64"), line.offset);
      return undefined;
    case "exit":
      return line;
    case "error":
      // Another reader follows this process now.
      if (line.code === "sandbox_in_use") return "running";
      throw errorOfFields(line);
    case "end":
    case "moving":
      return "running";
  }
}
