import { setTimeout as delay } from "node:timers/promises";
import type { SandboxEnd } from "../backend.ts";

const RETRY_MS = 5000;

/** Until the service has ended, through the loss of connections. The script says `STATUS EXIT_CODE OOM`, or `gone`. */
export async function watchService(wait: () => Promise<string>, signal: AbortSignal): Promise<SandboxEnd> {
  for (;;) {
    try {
      return endOf(await wait());
    } catch {
      await delay(RETRY_MS, undefined, { signal, ref: false });
    }
  }
}

function endOf(state: string): SandboxEnd {
  const [status, code, outOfMemory] = state.split(" ");
  if (status === "gone") return { reason: "crashed", message: "the container of its service was removed." };
  const reason = outOfMemory === "true" ? "out_of_memory" : "crashed";
  return { reason, message: `its service ended with exit code ${code ?? "unknown"}.` };
}
