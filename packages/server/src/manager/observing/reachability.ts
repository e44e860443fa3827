import { asSandboxerError, type ResponseOf, type Routes } from "@sandboxer/protocol";
import type { ObservingContext } from "../room-contexts.ts";
import { findSandbox } from "./describe.ts";

const PING_MS = 5000;

/** Asks the sandbox itself whether it answers. */
export async function reachabilityOf(
  context: ObservingContext,
  sandboxId: string,
): Promise<ResponseOf<Routes["reachability"]>> {
  const record = await findSandbox(context, sandboxId);
  const { state, owner } = record;
  const told = { state, owner_url: owner?.url ?? null };
  const live = context.sandboxes.get(sandboxId);
  if (live === undefined) {
    const elsewhere = owner === null ? "no server runs it" : `${owner.url ?? owner.instance_id} runs it`;
    return { ...told, reachable: false, summary: `It does not run on this server: ${elsewhere}.`, round_trip_ms: null };
  }
  if (live.state !== "running") {
    return { ...told, reachable: false, summary: `It is ${live.state}.`, round_trip_ms: null };
  }
  const startMs = context.nowMs;
  try {
    await live.handle.ping({ signal: AbortSignal.timeout(PING_MS) });
    const round_trip_ms = Math.round((context.nowMs - startMs) * 100) / 100;
    return { ...told, reachable: true, summary: "It answers.", round_trip_ms };
  } catch (error) {
    const summary = `It does not answer: ${asSandboxerError(error).message}`;
    return { ...told, reachable: false, summary, round_trip_ms: null };
  }
}
