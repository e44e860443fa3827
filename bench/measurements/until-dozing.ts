import { setTimeout as sleep } from "node:timers/promises";
import { callServer } from "../server/http-call.ts";
import type { ServerProcess } from "../server/server-process.ts";

const PATIENCE_MS = 60_000;

/** Resolves when every sandbox of the server is dozing. */
export async function untilAllDoze(server: ServerProcess): Promise<void> {
  const deadlineMs = performance.now() + PATIENCE_MS;
  for (;;) {
    const { sandboxes, dozing } = await callServer(server, "GET", "/v1/server");
    if (dozing === sandboxes) return;
    if (performance.now() > deadlineMs)
      throw new Error(`Only ${String(dozing)} of ${String(sandboxes)} sandboxes doze.`);
    await sleep(250);
  }
}
