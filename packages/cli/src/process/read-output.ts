import { createInterface } from "node:readline";
import { Readable } from "node:stream";
import type { ReadableStream as NodeReadableStream } from "node:stream/web";
import { errorOfFields, type Transport } from "@sandboxer/client/transport";
import type { ExecLine } from "@sandboxer/protocol";

export interface OutputPiece {
  readonly stream: "stdout" | "stderr";
  /** Base64. */
  readonly data: string;
  /** The offset after its last byte. */
  readonly offset: number;
}

export interface OutputPlace {
  readonly id: string;
  readonly processId: string;
  readonly offset: number;
  /** Reads the output of a paused sandbox from its checkpoint. */
  readonly saved: boolean;
}

/** Reads the buffered output of a process from an offset. Returns where it ends, and whether the process has ended. */
export async function readOutput(
  client: Transport,
  { id, processId, offset, saved }: OutputPlace,
  onPiece: (piece: OutputPiece) => Promise<void>,
): Promise<{ end: number; ended: boolean }> {
  const input = { params: { id, process_id: processId }, query: { offset, saved, encoding: "base64" as const } };
  // Outside the retried part: nothing is printed twice.
  let end = offset;
  return client.read("processOutput", input, {}, async (response) => {
    let ended = false;
    for await (const text of createInterface({ input: Readable.fromWeb(response.body as NodeReadableStream) })) {
      if (text === "") continue;
      const line = JSON.parse(text) as ExecLine;
      if (line.event === "stdout" || line.event === "stderr") {
        if (line.offset <= end) continue;
        await onPiece({ stream: line.event, data: line.data, offset: line.offset });
        end = line.offset;
      } else if (line.event === "exit") ended = true;
      else if (line.event === "error") throw errorOfFields(line);
    }
    return { end, ended };
  });
}
