import { asSandboxerError, SandboxerError, type Head } from "@sandboxer/protocol";
import type { SandboxHandle } from "../backends/backend.ts";
import type { CallOptions } from "../support/call-options.ts";
import type { AttachRequest } from "./attach.ts";
import type { ManagerContext } from "./context.ts";
import { watchForEnd } from "./end-of-sandbox.ts";
import { Execution, EXECUTION_KEY_PREFIX } from "./execution.ts";
import { freezeIfDue } from "./freeze.ts";
import { importHead } from "./import-head.ts";
import { LiveSandbox } from "./live-sandbox.ts";
import { notFound } from "./not-found.ts";
import { Stopwatch } from "./stopwatch.ts";
import { storedFacts } from "./stored-facts.ts";
import { withWorkFolder } from "./work-folder.ts";

/** Takes a stored sandbox over and brings it back to life, with what was executing and what nobody has read. */
export async function restoreSandbox(
  context: ManagerContext,
  request: AttachRequest & { readonly head: Head | undefined },
  options: CallOptions,
): Promise<LiveSandbox> {
  const { durable, sandboxId } = { durable: context.durable, sandboxId: request.sandboxId };
  const head = request.head ?? (await importHead(durable, sandboxId));
  if (head.state === "deleted" || (head.owner === null && head.checkpoint === null)) throw notFound(sandboxId);
  const sandbox = new LiveSandbox(storedFacts(sandboxId, head), "restoring", context.nowMs, context.onMove(sandboxId));
  context.admit(sandbox);
  const stopwatch = new Stopwatch(context.options.clock);
  const record = { operation: "restore", sandboxId, backend: head.backend } as const;
  const { observer } = context.options;
  try {
    request.onOwnership("acquiring", head);
    const claimed = await durable.ownership.claim(sandboxId, {
      handoffTimeoutMs: context.options.handoffTimeoutMs,
      onWaiting: () => request.onOwnership("waiting", head),
    });
    request.onOwnership("acquired", claimed);
    stopwatch.lap("claim");
    const { handle, execution } = await bringBack(context, claimed, request, stopwatch, options);
    sandbox.parentCheckpoint = request.checkpoint ?? claimed.checkpoint?.name ?? null;
    sandbox.execution = execution;
    sandbox.attach(request.client, context.nowMs);
    sandbox.started(handle);
    freezeIfDue(context, sandbox);
    watchForEnd(context, sandbox);
    observer.operation({ ...record, elapsedMs: stopwatch.elapsedMs, outcome: "ok", phases: stopwatch.phases });
    return sandbox;
  } catch (thrown) {
    if (sandbox.state !== "gone") sandbox.moveTo("gone");
    const error = asSandboxerError(thrown);
    observer.operation({ ...record, elapsedMs: stopwatch.elapsedMs, outcome: "error", error });
    throw error;
  }
}

/** The sandbox with what it was doing. On failure it is nobody's again. */
async function bringBack(
  context: ManagerContext,
  head: Head,
  request: AttachRequest,
  stopwatch: Stopwatch,
  options: CallOptions,
): Promise<{ handle: SandboxHandle; execution: Execution | undefined }> {
  let handle: SandboxHandle | undefined;
  try {
    handle = await load(context, head, request, stopwatch, options);
    const execution = await adoptExecution(handle);
    checkStillOwned(context, request.sandboxId, head);
    return { handle, execution };
  } catch (error) {
    if (handle !== undefined) await context.reported("end of a sandbox that was not brought back", handle.destroy());
    const release = context.durable.ownership.release(request.sandboxId);
    await context.reported("release of a sandbox that was not brought back", release);
    throw error;
  }
}

/** Bringing a sandbox back takes long enough for another server to take it over. */
function checkStillOwned({ durable }: ManagerContext, sandboxId: string, claimed: Head): void {
  if (durable.ownership.held(sandboxId)?.epoch === claimed.epoch) return;
  throw new SandboxerError("lease_lost", "Another server has taken the sandbox over.");
}

async function load(
  context: ManagerContext,
  head: Head,
  request: AttachRequest,
  stopwatch: Stopwatch,
  options: CallOptions,
): Promise<SandboxHandle> {
  const { checkpoints } = context.durable;
  const { sandboxId } = request;
  const newest = head.checkpoint;
  const name = request.checkpoint ?? newest?.name;
  if (name === undefined) throw notFound(sandboxId);
  const sha256 = name === newest?.name ? newest.sha256 : undefined;
  return withWorkFolder(context.options.workDirectory, async (folder) => {
    const state = await checkpoints.load(sandboxId, name, folder, {
      ...options,
      ...(sha256 === undefined ? {} : { sha256 }),
    });
    stopwatch.lap("unpack");
    const backend = context.backend(head.backend);
    try {
      const spec = storedFacts(sandboxId, head).spec;
      return await backend.acquireFromSnapshot({ sandboxId, spec }, state, options);
    } catch (thrown) {
      const error = asSandboxerError(thrown);
      throw new SandboxerError(error.code, `${name}: ${error.message}`, {
        cause: thrown,
        hint: error.hint,
        details: error.details,
      });
    } finally {
      stopwatch.lap("backend");
    }
  });
}

/** The process of the execution that ran, or whose end nobody was told of, when the sandbox was saved. */
async function adoptExecution(handle: SandboxHandle): Promise<Execution | undefined> {
  const processes = (await handle.processes()).filter((process) => process.key.startsWith(EXECUTION_KEY_PREFIX));
  const last = processes.at(-1);
  return last === undefined ? undefined : new Execution(last);
}
