import { cellExceptionSchema, cellResultSchema } from "@sandboxer/protocol";
import { z } from "zod";
import type { OutputChunk } from "../../backends/backend.ts";
import { jsonOf } from "../../support/json.ts";

/** A longer line is dropped. */
const MAX_LINE_BYTES = 64 * 1024;
/** A frame in parts that is longer than this is dropped. */
const MAX_FRAME_CHARACTERS = 16 * 1024 * 1024;

const count = z.int().nonnegative().max(Number.MAX_SAFE_INTEGER);
const id = z.string().max(64);

/**
 * The frames of an interpreter (packages/server/drivers): lines of JSON on its stdout, at most 64 KiB each. A longer
 * frame comes as `part` lines whose texts, joined, are the frame, and a line `whole` at the end.
 */
const frameSchema = z.discriminatedUnion("f", [
  z.object({ f: z.literal("ready"), version: z.string().max(200) }),
  z.object({ f: z.literal("part"), d: z.string() }),
  z.object({ f: z.literal("whole") }),
  /** A cell begins. Until its end, everything belongs to it. */
  z.object({ f: z.literal("start"), id, n: count }),
  z.object({ f: z.literal("out"), s: z.enum(["stdout", "stderr"]), d: z.string() }),
  z.object({ f: z.literal("result"), main: z.boolean(), formats: cellResultSchema.omit({ main: true }) }),
  z.object({ f: z.literal("error"), ...cellExceptionSchema.shape }),
  z.object({ f: z.literal("end"), id, n: count, status: z.enum(["ok", "error", "interrupted"]) }),
]);
type AnyFrame = z.infer<typeof frameSchema>;
export type Frame = Exclude<AnyFrame, { f: "part" | "whole" }>;

export interface ReceivedFrame {
  readonly frame: Frame;
  /** The offset after its last byte in the interpreter's output. */
  readonly offset: number;
}

/** Reads the frames of an interpreter's output, in whichever way it writes them. */
export interface FrameSource {
  read(chunk: OutputChunk): Iterable<ReceivedFrame>;
}

/**
 * Reads the frames of an interpreter's output. The code inside can write anything there: lines that are no frames are
 * dropped, and nothing grows without a limit.
 */
export class FrameReader implements FrameSource {
  /** The beginning of a line; undefined: it is too long. */
  #line: Buffer[] | undefined = [];
  #lineBytes = 0;
  /** The parts so far; undefined: there are too many. */
  #parts: string[] | undefined = [];
  #partCharacters = 0;

  *read({ stream, offset, data }: OutputChunk): Generator<ReceivedFrame> {
    // Output of the interpreter on its own stderr, at its start, is no frame.
    if (stream === "stderr") return;
    let from = 0;
    for (let end = data.indexOf(10); end !== -1; end = data.indexOf(10, from)) {
      this.#append(data.subarray(from, end));
      const line = this.#line;
      [this.#line, this.#lineBytes] = [[], 0];
      from = end + 1;
      const frame = line === undefined ? undefined : this.#frameOf(Buffer.concat(line).toString("utf8"));
      if (frame !== undefined) yield { frame, offset: offset + from };
    }
    this.#append(data.subarray(from));
  }

  #append(bytes: Uint8Array): void {
    if (bytes.length === 0) return;
    this.#lineBytes += bytes.length;
    if (this.#lineBytes > MAX_LINE_BYTES) this.#line = undefined;
    this.#line?.push(Buffer.from(bytes));
  }

  #frameOf(line: string): Frame | undefined {
    const frame = parsed(line);
    if (frame?.f === "part") {
      this.#partCharacters += frame.d.length;
      if (this.#partCharacters > MAX_FRAME_CHARACTERS) this.#parts = undefined;
      this.#parts?.push(frame.d);
      return undefined;
    }
    const parts = this.#parts;
    if (frame === undefined || this.#partCharacters === 0) return frame?.f === "whole" ? undefined : frame;
    [this.#parts, this.#partCharacters] = [[], 0];
    if (frame.f !== "whole") return frame;
    const whole = parts === undefined ? undefined : parsed(parts.join(""));
    return whole?.f === "part" || whole?.f === "whole" ? undefined : whole;
  }
}

function parsed(line: string): AnyFrame | undefined {
  const answer = frameSchema.safeParse(jsonOf(line));
  return answer.success ? answer.data : undefined;
}
