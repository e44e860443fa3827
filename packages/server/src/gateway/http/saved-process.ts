import { Readable } from "node:stream";
import type { ExecLine, ProcessRecord } from "@sandboxer/protocol";
import type { ProcessNote } from "../../manager/processes/process-notes.ts";
import { signalName } from "../../manager/processes/signals.ts";
import { StreamAnswer } from "./handler.ts";
import type { OutputEncoding } from "./process-lines.ts";

/** The record of a process in a paused sandbox, as it was saved. A running one continues at the resume. */
export function savedRecord(note: ProcessNote): ProcessRecord {
  const { id, pid, command, started_at, exit, pty, detached, acknowledged, tail } = note;
  const end = endOf(note);
  return {
    id,
    pid,
    state: exit === null ? "running" : "exited",
    command,
    started_at,
    exit_code: exit?.code ?? null,
    signal: signalName(exit?.signal ?? undefined),
    pty,
    detached,
    output_start: tail[0]?.offset ?? end,
    output_end: end,
    acknowledged,
  };
}

/** Its saved output from an offset on, as JSON lines. */
export function savedLines(note: ProcessNote, from: number | undefined, encoding: OutputEncoding): StreamAnswer {
  const { id, pid, exit, tail } = note;
  const end = endOf(note);
  const start = Math.min(Math.max(from ?? note.acknowledged, tail[0]?.offset ?? end), end);
  const lines: ExecLine[] = [{ event: "started", process_id: id, pid, offset: start }];
  for (const { stream, offset, data } of tail) {
    const bytes = Buffer.from(data, "base64");
    const rest = bytes.subarray(Math.max(0, start - offset));
    if (rest.length > 0) {
      lines.push({ event: stream, data: rest.toString(encoding), encoding, offset: offset + bytes.length });
    }
  }
  lines.push(
    exit === null
      ? { event: "end", offset: end }
      : {
          event: "exit",
          exit_code: exit.code,
          signal: signalName(exit.signal ?? undefined),
          offset: end,
          timed_out: false,
          hint: null,
        },
  );
  const texts = lines.map((line) => `${JSON.stringify(line)}\n`);
  return new StreamAnswer("application/x-ndjson", Readable.from(texts, { objectMode: false }));
}

function endOf({ exit, tail, acknowledged }: ProcessNote): number {
  const last = tail.at(-1);
  const saved = last === undefined ? acknowledged : last.offset + Buffer.from(last.data, "base64").length;
  return exit?.output_end ?? saved;
}
