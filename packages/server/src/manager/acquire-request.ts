import type { AcquireRequest } from "../backends/backend.ts";
import { resolveSecretRefs, revealEnvironment } from "../secrets/secret.ts";
import type { CallOptions } from "../support/call-options.ts";
import type { ManagerContext } from "./context.ts";
import type { SandboxFacts } from "./live-sandbox.ts";

/**
 * What a backend is asked for. The values of secrets come in here, each time that a sandbox is started, on whichever
 * server: what is kept and stored of it has their names only.
 */
export async function acquireRequest(
  { options: { secrets } }: ManagerContext,
  { sandboxId, spec }: Pick<SandboxFacts, "sandboxId" | "spec">,
  options: CallOptions = {},
): Promise<AcquireRequest> {
  const { secretRefs = {}, ...rest } = spec;
  if (Object.keys(secretRefs).length === 0) return { sandboxId, spec: rest };
  const values = revealEnvironment(await resolveSecretRefs(secretRefs, secrets, options));
  return { sandboxId, spec: { ...rest, env: { ...rest.env, ...values } } };
}
