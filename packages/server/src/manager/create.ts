import { createHash, randomBytes, randomUUID } from "node:crypto";
import { resourcesInBytes, SandboxerError, type CreationMessage, type HeadFlags } from "@sandboxer/protocol";
import type { AcquireRequest, SandboxHandle } from "../backends/backend.ts";
import type { CallOptions } from "../support/call-options.ts";
import type { SandboxClient } from "./client.ts";
import type { ManagerContext } from "./context.ts";
import { watchForEnd } from "./end-of-sandbox.ts";
import { LiveSandbox, type SandboxFacts } from "./live-sandbox.ts";
import { Stopwatch } from "./stopwatch.ts";
import { withWorkFolder } from "./work-folder.ts";

const TOKEN_BYTES = 32;

export interface CreateRequest {
  readonly message: CreationMessage;
  readonly client: SandboxClient;
  /** Called around taking ownership, which only sandboxes that are stored have. */
  readonly onOwnership?: (step: "acquiring" | "acquired") => void;
}

export interface CreatedSandbox {
  readonly sandbox: LiveSandbox;
  /** Told once, to the creator; only its digest is kept. */
  readonly token: string;
}

/** Makes a sandbox and attaches its creator. On failure nothing is left of it. */
export async function createSandbox(
  context: ManagerContext,
  request: CreateRequest,
  options: CallOptions = {},
): Promise<CreatedSandbox> {
  const { message } = request;
  checkNeeds(context, message);
  const token = randomBytes(TOKEN_BYTES).toString("hex");
  const facts = factsOf(context, message, token);
  const sandbox = new LiveSandbox(facts, "creating", context.nowMs, context.onMove(facts.sandboxId));
  context.admit(sandbox);
  const { clock, observer } = context.options;
  const stopwatch = new Stopwatch(clock);
  const record = { operation: "create", sandboxId: sandbox.id, backend: facts.backend } as const;
  try {
    const handle = await acquire(context, facts, message, options);
    stopwatch.lap("backend");
    await takeOwnership(context, facts, message, handle, request.onOwnership);
    stopwatch.lap("ownership");
    sandbox.attach(request.client, context.nowMs);
    sandbox.started(handle);
    watchForEnd(context, sandbox);
    observer.operation({ ...record, elapsedMs: stopwatch.elapsedMs, outcome: "ok", phases: stopwatch.phases });
    return { sandbox, token };
  } catch (error) {
    sandbox.moveTo("gone");
    observer.operation({ ...record, elapsedMs: stopwatch.elapsedMs, outcome: "error", error });
    throw error;
  }
}

/** The flags that need another thing, and what is missing, in words that clients know. */
function checkNeeds(context: ManagerContext, message: CreationMessage): void {
  const stored = context.options.durable !== undefined;
  const refuse = (text: string): never => {
    throw new SandboxerError("checkpoint_disabled", text);
  };
  if (message.enable_checkpoint && !stored) refuse("Checkpointing is not enabled on the server.");
  if (message.enable_sandbox_handoff && !message.enable_checkpoint) {
    refuse("Sandbox handoff requires checkpointing to be enabled.");
  }
  if (message.enable_idle_timeout_auto_checkpoint && !message.enable_checkpoint) {
    refuse("Idle timeout auto checkpoint requires checkpointing to be enabled.");
  }
  if (message.on_disconnect === "checkpoint" && !message.enable_checkpoint) {
    refuse("Checkpointing on disconnect requires checkpointing to be enabled.");
  }
  if (message.filesystem_snapshot_name !== undefined && !stored) {
    refuse("Filesystem snapshot is not enabled on the server.");
  }
  const backend = context.backend(message.backend ?? context.options.defaultBackend);
  if (message.enable_checkpoint && backend.capabilities.snapshot !== "full") {
    throw new SandboxerError("not_supported", `The backend ${backend.name} cannot save a running sandbox.`);
  }
}

function factsOf(context: ManagerContext, message: CreationMessage, token: string): SandboxFacts {
  const { defaultBackend, defaultIdleTimeoutMs } = context.options;
  const flags: HeadFlags = {
    enable_checkpoint: message.enable_checkpoint,
    enable_idle_timeout_auto_checkpoint: message.enable_idle_timeout_auto_checkpoint,
    enable_sandbox_handoff: message.enable_sandbox_handoff,
    on_disconnect: message.on_disconnect,
  };
  return {
    sandboxId: randomUUID(),
    backend: message.backend ?? defaultBackend,
    spec: {
      ...(message.image === undefined ? {} : { image: message.image }),
      env: message.env,
      resources: resourcesInBytes(message.resources),
      network: message.network,
    },
    labels: message.labels,
    flags,
    idleTimeoutMs: message.idle_timeout === undefined ? defaultIdleTimeoutMs : message.idle_timeout * 1000,
    tokenHash: createHash("sha256").update(token).digest("hex"),
  };
}

async function acquire(
  context: ManagerContext,
  facts: SandboxFacts,
  message: CreationMessage,
  options: CallOptions,
): Promise<SandboxHandle> {
  const backend = context.backend(facts.backend);
  const request: AcquireRequest = { sandboxId: facts.sandboxId, spec: facts.spec };
  const name = message.filesystem_snapshot_name;
  if (name === undefined) return backend.acquire(request, options);
  return withWorkFolder(context.options.workDirectory, async (folder) => {
    const state = await context.durable.snapshots.load(name, folder, options);
    return backend.acquireFromSnapshot(request, state, options);
  });
}

/** Last, because a head without a sandbox would stay in the store for ever. */
async function takeOwnership(
  context: ManagerContext,
  facts: SandboxFacts,
  message: CreationMessage,
  handle: SandboxHandle,
  onOwnership: CreateRequest["onOwnership"],
): Promise<void> {
  if (!message.enable_checkpoint) return;
  onOwnership?.("acquiring");
  try {
    await context.durable.ownership.create(facts.sandboxId, {
      idleTimeoutSeconds: facts.idleTimeoutMs / 1000,
      backend: facts.backend,
      spec: { ...facts.spec, labels: facts.labels },
      flags: facts.flags,
      tokenHash: facts.tokenHash ?? null,
      lineage: { sandbox_id: null, checkpoint: null, filesystem_snapshot: message.filesystem_snapshot_name ?? null },
    });
  } catch (error) {
    await handle.destroy();
    throw error;
  }
  onOwnership?.("acquired");
}
