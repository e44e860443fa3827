import type { CreateRequestBody } from "@sandboxer/protocol";
import { applyProfile } from "../profiles/apply-profile.ts";
import { createSandbox, type CreatedSandbox } from "./create.ts";
import type { ManagerContext } from "./context.ts";
import { planOfRequest } from "./plan.ts";
import type { VerbOptions } from "./tracked.ts";

/** Makes what a request asks for, with its profile filling in what it leaves open. */
export async function createFromRequest(
  context: ManagerContext,
  body: CreateRequestBody,
  options: VerbOptions = {},
): Promise<CreatedSandbox> {
  const { profiles } = context.options;
  if (body.profile === undefined) return createSandbox(context, { plan: planOfRequest(context, body) }, options);
  const { request, placement, setup, secretRefs } = applyProfile(profiles.get(body.profile), body);
  const plan = planOfRequest(context, request);
  const spec = { ...plan.spec, placement, setup, secretRefs };
  return createSandbox(context, { plan: { ...plan, spec } }, options);
}
