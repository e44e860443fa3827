import { copyId } from "@sandboxer/protocol";
import type { About } from "@sandboxer/protocol";
import type { AcquireRequest, SandboxIdentity } from "../../backends/backend.ts";
import { resolveSecretRefs, revealEnvironment } from "../../secrets/secret.ts";
import type { CallOptions } from "../../support/call-options.ts";
import type { PlanContext } from "../room-contexts.ts";
import type { SandboxFacts } from "../live-sandbox.ts";

/**
 * What a backend is asked for. The values of secrets come in here, each time that a sandbox is started, on whichever
 * server: what is kept and stored of it has their names only.
 */
export async function acquireRequest(
  context: PlanContext,
  facts: Pick<SandboxFacts, "sandboxId" | "backend" | "spec" | "about"> & Partial<Pick<SandboxFacts, "copy">>,
  options: CallOptions = {},
): Promise<AcquireRequest> {
  const { sandboxId, copy = 0, spec, about } = facts;
  const { secretRefs = {}, ...rest } = spec;
  const { outlivesServer } = context.backend(facts.backend).capabilities;
  const identity = identityOf(context, about);
  const request = {
    sandboxId: outlivesServer ? copyId(sandboxId, copy) : sandboxId,
    ...(identity === undefined ? {} : { identity }),
  };
  if (Object.keys(secretRefs).length === 0) return { ...request, spec: rest };
  const values = revealEnvironment(await resolveSecretRefs(secretRefs, context.options.secrets, options));
  return { ...request, spec: { ...rest, env: { ...rest.env, ...values } } };
}

/** Undefined for a sandbox without a key: nobody will ask for it by one. */
export function identityOf({ options }: PlanContext, { key, spec_hash }: About): SandboxIdentity | undefined {
  if (key === null || spec_hash === null) return undefined;
  return { key, specHash: spec_hash, owner: options.installation, idleTtlMs: options.resumeTtlMs };
}
