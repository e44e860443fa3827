import type { ProcessEvent } from "@sandboxer/protocol";
import { SandboxerError } from "@sandboxer/protocol/errors";

export interface OutputChunk {
  readonly stream: "stdout" | "stderr";
  readonly data: Uint8Array;
  /** The number of bytes of the whole output including this chunk: the offset to continue from. */
  readonly offset: number;
}

/** u8 stream, u64 big-endian offset of the first byte, bytes. */
const HEADER_BYTES = 9;
const STREAMS: Readonly<Record<number, OutputChunk["stream"]>> = { 1: "stdout", 2: "stderr" };

/** An output frame of the process WebSocket, with the offset of its first byte. */
export function decodeFrame(frame: ArrayBuffer): { stream: OutputChunk["stream"]; start: number; data: Uint8Array } {
  const header = new DataView(frame);
  const stream = frame.byteLength < HEADER_BYTES ? undefined : STREAMS[header.getUint8(0)];
  if (stream === undefined) throw new SandboxerError("internal", "The server sent a frame that is not output.");
  return { stream, start: Number(header.getBigUint64(1)), data: new Uint8Array(frame, HEADER_BYTES) };
}

export function decodeEvent(text: string): ProcessEvent {
  return JSON.parse(text) as ProcessEvent;
}
