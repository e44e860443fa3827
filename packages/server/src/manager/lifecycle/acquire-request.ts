import { copyId, SandboxerError } from "@sandboxer/protocol";
import type { About } from "@sandboxer/protocol";
import type { AcquireRequest, SandboxIdentity } from "../../backends/backend.ts";
import { resolveSecretRefs, revealEnvironment } from "../../secrets/secret.ts";
import type { CallOptions } from "../../support/call-options.ts";
import type { PlanContext } from "../room-contexts.ts";
import type { SandboxFacts } from "../live-sandbox.ts";

/**
 * Builds the request to a backend. Secret values are resolved here each time a sandbox starts, on whichever server;
 * records only have their names.
 */
export async function acquireRequest(
  context: PlanContext,
  facts: Pick<SandboxFacts, "sandboxId" | "backend" | "spec" | "about"> & Partial<Pick<SandboxFacts, "copy">>,
  options: CallOptions = {},
): Promise<AcquireRequest> {
  const { sandboxId, copy = 0, spec, about } = facts;
  const { secretRefs: recorded = {}, ...rest } = spec;
  const { outlivesServer } = context.backend(facts.backend).capabilities;
  const identity = identityOf(context, about);
  const request = {
    sandboxId: outlivesServer ? copyId(sandboxId, copy) : sandboxId,
    ...(identity === undefined ? {} : { identity }),
  };
  if (Object.keys(recorded).length === 0) return { ...request, spec: rest };
  const secretRefs = ownSecretRefs(context, about.profile, Object.keys(recorded));
  const values = revealEnvironment(await resolveSecretRefs(secretRefs, context.options.secrets, options));
  const secretVariables = Object.keys(values);
  return { ...request, secretVariables, spec: { ...rest, env: { ...rest.env, ...values } } };
}

/**
 * Maps variables to secrets by this server's own profile. The record only says which variables there are: an attacker
 * who can write the store must not choose which secrets of this server a sandbox sees.
 */
function ownSecretRefs(
  { options }: PlanContext,
  profileName: string | null,
  variables: readonly string[],
): Readonly<Record<string, string>> {
  const profile = profileName === null ? undefined : options.profiles.find(profileName);
  const pairs = variables.map((variable) => {
    const name = profile?.secret_refs?.[variable];
    if (name !== undefined) return [variable, name] as const;
    const missing =
      profile === undefined ? "this server does not have that profile" : "that profile has no such secret";
    throw new SandboxerError(
      "secret_unavailable",
      `The sandbox was created with a secret in ${variable} by the profile ${profileName ?? "(none)"}, but ${missing}.`,
      {
        hint: "Give this server the same profiles as the server that created the sandbox; secrets come from the profile, not from the record.",
        details: { profile: profileName, variable },
      },
    );
  });
  return Object.fromEntries(pairs);
}

/** Undefined for a sandbox without a key. */
export function identityOf({ options }: PlanContext, { key, spec_hash }: About): SandboxIdentity | undefined {
  if (key === null || spec_hash === null) return undefined;
  return { key, specHash: spec_hash, owner: options.installation, idleTtlMs: options.resumeTtlMs };
}
