import { randomUUID } from "node:crypto";
import { asSandboxerError, SandboxerError } from "@sandboxer/protocol";
import type { SandboxBackend, SandboxSpec } from "../../backends/backend.ts";
import type { KeyOptions } from "../../checkpoints/data-keys.ts";
import type { CallOptions } from "../../support/call-options.ts";
import { cutMessage } from "../../support/cut-message.ts";
import { unlessAborted } from "../../support/unless-aborted.ts";
import type { ProofContext } from "../room-contexts.ts";
import { acquireWithState, type MaybeVerified } from "../snapshots/portable/acquire-with-state.ts";
import { tracked, type Track, type VerbOptions } from "../observing/operations/tracked.ts";
import { withWorkFolder } from "./work-folder.ts";

const PING_MS = 30_000;

/** Failures that say nothing about the saved state: another server, or this one later, may succeed. */
const NO_VERDICT: ReadonlySet<string> = new Set([
  "snapshot_not_found",
  "not_supported",
  "image_incompatible",
  "limit_reached",
  "draining",
  "no_space",
  "store_unavailable",
  "backend_unavailable",
  // A machine that is overloaded or short of memory or disk.
  "timeout",
  "internal",
  // An encrypted state whose key this server does not have.
  "key_required",
  "wrong_key",
  "key_unavailable",
]);

/** A saved state to be test-restored. */
export interface Trial {
  /** The sandbox that it was saved from. */
  readonly sandboxId: string;
  readonly backend: SandboxBackend;
  readonly spec: SandboxSpec;
  load(folder: string, options: CallOptions & KeyOptions & { readonly fromStore: boolean }): Promise<MaybeVerified>;
  /** Records the result. */
  proven(proof: { readonly at: string; readonly engine: string }): Promise<void>;
  unproven(failure: { readonly at: string; readonly reason: string }, error: SandboxerError): Promise<SandboxerError>;
}

/**
 * Restores a saved state into a temporary sandbox, checks that it answers, and ends it. The sandbox has no network and
 * no secrets, is in no list, and ends with this server.
 */
export async function tryRestore(context: ProofContext, trial: Trial, options: VerbOptions): Promise<void> {
  const { sandboxId, backend } = trial;
  const work = { operation: "prove", sandboxId, backend: backend.name } as const;
  const proof = context.proofs.run((stopped) => {
    const signal = options.signal === undefined ? stopped : AbortSignal.any([options.signal, stopped]);
    return tracked(context, work, { ...options, signal }, async (track) => {
      checkRoom(context);
      context.checkResources({ backend: backend.name, spec: trial.spec });
      let engine: string | undefined;
      try {
        engine = await restoreAndAsk(context, trial, track);
      } catch (thrown) {
        const error = asSandboxerError(signal.aborted ? signal.reason : thrown);
        if (signal.aborted || NO_VERDICT.has(error.code)) throw error;
        throw await trial.unproven({ at: now(context), reason: cutMessage(error.message) }, error);
      }
      await trial.proven({ at: now(context), engine: await engineOf(backend, engine) });
      track.lap("record");
    });
  });
  context.untilEnded(proof);
  await proof;
}

/** For `unproven`: the same error, with its subject. */
export function notRestored(what: string, cause: SandboxerError, hint: string): SandboxerError {
  const { code, message, details } = cause;
  const text = `The test restore of the ${what} failed: ${message}`;
  return new SandboxerError(code, text, { cause, hint, details });
}

/** Refuses states that cannot be test-restored at all. */
export function checkTrial(backend: SandboxBackend): void {
  const hint = "Restore it, check the new sandbox, then delete that.";
  if (backend.capabilities.outlivesServer) {
    const why = `Sandboxes of the backend ${backend.name} outlive the server, so a test restore could leave one behind.`;
    throw new SandboxerError("not_supported", why, { hint });
  }
}

function checkRoom({ sandboxes, options }: ProofContext): void {
  if (sandboxes.size < options.maxSandboxes) return;
  throw new SandboxerError("limit_reached", `The server runs ${sandboxes.size} sandboxes, which is its limit.`, {
    hint: "A test restore counts as a sandbox. Try again when a sandbox has ended.",
  });
}

/** Returns the version of the engine that ran it, if it is known. */
async function restoreAndAsk(context: ProofContext, trial: Trial, track: Track): Promise<string | undefined> {
  const { signal } = track.options;
  // As it was, under a new id, without network, secrets, and setup commands that would need them.
  const { secretRefs: _secrets, setup: _setup, ...rest } = trial.spec;
  const request = { sandboxId: randomUUID(), spec: { ...rest, network: "none" as const }, skipWarmPool: true };
  return await withWorkFolder(context.options.workDirectory, async (folder) => {
    const state = await trial.load(folder, { ...track.options, fromStore: true });
    track.lap("unpack");
    const handle = await acquireWithState(trial.backend, request, state, track.options);
    track.lap("backend");
    try {
      await unlessAborted(handle.ping({ signal: AbortSignal.timeout(PING_MS) }), signal);
      track.lap("answer");
      return handle.engine;
    } finally {
      await context.reported("end of a test restore", handle.destroy());
    }
  });
}

async function engineOf(backend: SandboxBackend, used: string | undefined): Promise<string> {
  const version = used ?? (await backend.probe()).details?.["version"];
  return version === undefined ? backend.name : `${backend.name} ${version}`;
}

function now({ options }: ProofContext): string {
  return new Date(options.clock.wallMs()).toISOString();
}
