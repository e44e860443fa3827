import type { ManagedProcess } from "./managed-process.ts";

/**
 * How far a reader whose client does not say what has arrived stays behind with acknowledging: more than what buffers
 * between here and the client hold, and half of what the sandbox keeps.
 */
export const BEHIND_BYTES = 512 * 1024;

export interface CollectedOutput {
  readonly stdout: Buffer;
  readonly stderr: Buffer;
  /** Output is missing: at the end, or its beginning was gone. */
  readonly truncated: boolean;
}

/** Reads a process to its end and gives its output, up to a limit; the rest is read and dropped. */
export async function collectOutput(
  process: ManagedProcess,
  options: { readonly maxBytes: number; readonly signal: AbortSignal },
): Promise<CollectedOutput> {
  const from = await process.startOf(0);
  const parts: Record<"stdout" | "stderr", Uint8Array[]> = { stdout: [], stderr: [] };
  let truncated = from > 0;
  let room = options.maxBytes;
  for await (const { stream, offset, data } of process.follow({ from, signal: options.signal })) {
    if (data.length > room) truncated = true;
    if (room > 0) parts[stream].push(data.subarray(0, room));
    room = Math.max(0, room - data.length);
    process.acknowledge(offset + data.length - BEHIND_BYTES);
  }
  options.signal.throwIfAborted();
  return { stdout: Buffer.concat(parts.stdout), stderr: Buffer.concat(parts.stderr), truncated };
}
