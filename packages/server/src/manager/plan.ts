import {
  aboutSchema,
  parseDurationMs,
  resourcesInBytes,
  SandboxerError,
  type About,
  type CreateRequestBody,
  type CreationMessage,
  type HeadFlags,
} from "@sandboxer/protocol";
import type { SandboxSpec } from "../backends/backend.ts";
import type { ManagerContext } from "./context.ts";

/** What is going to be made: every default decided, nothing done yet. */
export interface SandboxPlan {
  readonly backend: string;
  readonly spec: SandboxSpec;
  readonly labels: Readonly<Record<string, string>>;
  readonly flags: HeadFlags;
  readonly idleTimeoutMs: number;
  readonly about: About;
  readonly filesystemSnapshot: string | undefined;
}

/** Clients of the WebSocket protocol get what they ask for, and nothing that they do not. */
export function planOfMessage(context: ManagerContext, message: CreationMessage): SandboxPlan {
  const { defaultBackend, defaultIdleTimeoutMs } = context.options;
  return {
    backend: message.backend ?? defaultBackend,
    spec: {
      ...(message.image === undefined ? {} : { image: message.image }),
      env: message.env,
      resources: resourcesInBytes(message.resources),
      network: message.network,
    },
    labels: message.labels,
    flags: {
      enable_checkpoint: message.enable_checkpoint,
      enable_idle_timeout_auto_checkpoint: message.enable_idle_timeout_auto_checkpoint,
      enable_sandbox_handoff: message.enable_sandbox_handoff,
      on_disconnect: message.on_disconnect,
    },
    idleTimeoutMs: message.idle_timeout === undefined ? defaultIdleTimeoutMs : message.idle_timeout * 1000,
    about: aboutSchema.parse({}),
    filesystemSnapshot: message.filesystem_snapshot_name,
  };
}

/** Over HTTP a sandbox can be saved, moved and woken again wherever that is possible, unless told otherwise. */
export function planOfRequest(context: ManagerContext, body: CreateRequestBody): SandboxPlan {
  const { defaultBackend, defaultIdleTimeoutMs, durable } = context.options;
  const backend = context.backend(body.backend ?? defaultBackend);
  const savable = durable !== undefined && backend.capabilities.snapshot === "full";
  const enable_checkpoint = body.enable_checkpoint ?? savable;
  return {
    backend: backend.name,
    spec: {
      ...(body.image === undefined ? {} : { image: body.image }),
      env: body.env ?? {},
      resources: resourcesInBytes(body.resources ?? {}),
      network: body.network ?? "none",
      ...(body.inputs === undefined ? {} : { inputs: body.inputs }),
    },
    labels: body.labels ?? {},
    flags: {
      enable_checkpoint,
      enable_idle_timeout_auto_checkpoint: body.enable_idle_timeout_auto_checkpoint ?? enable_checkpoint,
      enable_sandbox_handoff: body.enable_sandbox_handoff ?? enable_checkpoint,
      on_disconnect: body.on_disconnect ?? "keep",
    },
    idleTimeoutMs: idleTimeoutMs(body.idle_timeout) ?? defaultIdleTimeoutMs,
    about: aboutSchema.parse({
      name: body.name,
      profile: body.profile,
      key: body.key,
      expires_at: expiresAt(context, body.ttl),
    }),
    filesystemSnapshot: body.filesystem_snapshot_name,
  };
}

/** The flags that need another thing, and what is missing, in words that clients know. */
export function checkNeeds(context: ManagerContext, { flags, backend, filesystemSnapshot }: SandboxPlan): void {
  const stored = context.options.durable !== undefined;
  const refuse = (text: string): never => {
    throw new SandboxerError("checkpoint_disabled", text);
  };
  if (flags.enable_checkpoint && !stored) refuse("Checkpointing is not enabled on the server.");
  if (flags.enable_sandbox_handoff && !flags.enable_checkpoint) {
    refuse("Sandbox handoff requires checkpointing to be enabled.");
  }
  if (flags.enable_idle_timeout_auto_checkpoint && !flags.enable_checkpoint) {
    refuse("Idle timeout auto checkpoint requires checkpointing to be enabled.");
  }
  if (flags.on_disconnect === "checkpoint" && !flags.enable_checkpoint) {
    refuse("Checkpointing on disconnect requires checkpointing to be enabled.");
  }
  if (filesystemSnapshot !== undefined && !stored) refuse("Filesystem snapshot is not enabled on the server.");
  const { capabilities, name } = context.backend(backend);
  if (flags.enable_checkpoint && capabilities.snapshot !== "full") {
    throw new SandboxerError("not_supported", `The backend ${name} cannot save a running sandbox.`);
  }
}

export function idleTimeoutMs(given: number | string | undefined): number | undefined {
  if (given === undefined) return undefined;
  return typeof given === "number" ? given * 1000 : parseDurationMs(given);
}

/** The end of a time to live that begins now. */
export function expiresAt({ options }: ManagerContext, ttl: string | undefined): string | null {
  return ttl === undefined ? null : new Date(options.clock.wallMs() + parseDurationMs(ttl)).toISOString();
}
