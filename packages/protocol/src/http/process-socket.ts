import { z } from "zod";
import { parseObject } from "../client-message.ts";
import { hintSchema, ptySchema, signalSchema } from "./process-record.ts";

/**
 * The frames of the process WebSocket (docs/reference/http-processes.md, "Attach"). Binary frames are bytes: output to the client, stdin to
 * the server. Text frames are JSON: events to the client, actions to the server.
 */

/** How much unacknowledged output may be in flight. */
export const ATTACH_WINDOW_BYTES = 256 * 1024;
/** How much stdin a client may have sent that the process has not read. */
export const ATTACH_STDIN_BYTES = 1024 * 1024;
/** A frame of output: u8 stream, u64 big-endian offset of the first byte, bytes. */
const OUTPUT_HEADER_BYTES = 9;

const STREAMS = { stdout: 1, stderr: 2 } as const;

export interface OutputFrame {
  readonly stream: keyof typeof STREAMS;
  readonly offset: number;
  readonly data: Uint8Array;
}

export function encodeOutputFrame({ stream, offset, data }: OutputFrame): Uint8Array<ArrayBuffer> {
  const frame = new Uint8Array(OUTPUT_HEADER_BYTES + data.length);
  const header = new DataView(frame.buffer);
  header.setUint8(0, STREAMS[stream]);
  header.setBigUint64(1, BigInt(offset));
  frame.set(data, OUTPUT_HEADER_BYTES);
  return frame;
}

/** Undefined if the bytes are not an output frame. */
export function decodeOutputFrame(frame: Uint8Array): OutputFrame | undefined {
  if (frame.length < OUTPUT_HEADER_BYTES) return undefined;
  const header = new DataView(frame.buffer, frame.byteOffset, OUTPUT_HEADER_BYTES);
  const offset = header.getBigUint64(1);
  const stream = header.getUint8(0) === STREAMS.stdout ? "stdout" : "stderr";
  if (header.getUint8(0) !== STREAMS[stream] || offset > Number.MAX_SAFE_INTEGER) return undefined;
  return { stream, offset: Number(offset), data: frame.subarray(OUTPUT_HEADER_BYTES) };
}

export const processEventSchema = z.discriminatedUnion("event", [
  z.object({
    event: z.literal("attached"),
    process_id: z.string(),
    pid: z.number().int(),
    /** Where the output begins: later than requested if older bytes were dropped. */
    offset: z.number().int(),
  }),
  /** How many bytes of this socket's stdin the process has read in total. */
  z.object({ event: z.literal("stdin"), bytes: z.number().int() }),
  z.object({
    event: z.literal("exit"),
    exit_code: z.number().int().nullable(),
    signal: z.string().nullable(),
    offset: z.number().int(),
    timed_out: z.boolean(),
    hint: hintSchema,
  }),
  /**
   * The sandbox is being saved or moved; resume it and attach again. `stdin_bytes` as in `stdin`, for the last time.
   */
  z.object({ event: z.literal("moving"), offset: z.number().int(), stdin_bytes: z.number().int() }),
  z.object({
    event: z.literal("error"),
    code: z.string(),
    message: z.string(),
    hint: z.string(),
    /** As in the body of an HTTP error. */
    details: z.record(z.string(), z.unknown()).optional(),
  }),
]);
export type ProcessEvent = z.infer<typeof processEventSchema>;

const processActionSchema = z.discriminatedUnion("action", [
  z.strictObject({ action: z.literal("ack"), offset: z.number().int().nonnegative().safe() }),
  z.strictObject({ action: z.literal("stdin_close") }),
  z.strictObject({ action: z.literal("resize"), ...ptySchema.shape }),
  z.strictObject({ action: z.literal("signal"), signal: signalSchema }),
]);
export type ProcessAction = z.infer<typeof processActionSchema>;

/** Parses a client's text frame, or returns its error. */
export function parseProcessAction(text: string): ProcessAction | { readonly action: "malformed"; message: string } {
  const parsed = processActionSchema.safeParse(parseObject(text) ?? text);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  const where = issue?.path.join(".") ?? "";
  return { action: "malformed", message: `The message is not a valid action: ${where} ${issue?.message ?? ""}`.trim() };
}
