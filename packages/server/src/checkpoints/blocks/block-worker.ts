import { parentPort } from "node:worker_threads";
import { type BlockJob, type BlockResult, type BlockSession, BlockSessionWork } from "./block-jobs.ts";

/** Messages from the pool to a worker. */
export type WorkerMessage =
  | { readonly kind: "open"; readonly sessionId: number; readonly session: BlockSession }
  | { readonly kind: "close"; readonly sessionId: number }
  | { readonly kind: "run"; readonly sessionId: number; readonly job: BlockJob };

export type WorkerAnswer =
  | { readonly result: BlockResult }
  | { readonly failure: { readonly message: string; readonly code: string | undefined } };

const sessions = new Map<number, BlockSessionWork>();

parentPort?.on("message", (message: WorkerMessage) => {
  if (message.kind === "open") sessions.set(message.sessionId, new BlockSessionWork(message.session));
  else if (message.kind === "close") {
    sessions.get(message.sessionId)?.close();
    sessions.delete(message.sessionId);
  } else answer(message.sessionId, message.job);
});

function answer(sessionId: number, job: BlockJob): void {
  try {
    const session = sessions.get(sessionId);
    if (session === undefined) throw new Error("The session is not open here.");
    const { result, transfer } = packed(session.run(job));
    parentPort?.postMessage({ result } satisfies WorkerAnswer, transfer);
  } catch (error) {
    const { message, code } = error as NodeJS.ErrnoException;
    parentPort?.postMessage({ failure: { message, code } } satisfies WorkerAnswer, []);
  }
}

/** Puts the bytes of all blocks into one buffer, which is transferred without copying. */
function packed(result: BlockResult): { result: BlockResult; transfer: ArrayBuffer[] } {
  if (result.kind !== "encoded") return { result, transfer: [] };
  const sizes = result.blocks.map((block) => (block.kind === "stored" ? block.bytes.byteLength : 0));
  const memory = new ArrayBuffer(sizes.reduce((sum, size) => sum + size, 0));
  let at = 0;
  const blocks = result.blocks.map((block) => {
    if (block.kind !== "stored") return block;
    const bytes = new Uint8Array(memory, at, block.bytes.byteLength);
    bytes.set(block.bytes);
    at += bytes.byteLength;
    // A digest may be a view of shared memory.
    return { ...block, bytes, sha256: new Uint8Array(block.sha256) };
  });
  return { result: { kind: "encoded", blocks }, transfer: [memory] };
}
