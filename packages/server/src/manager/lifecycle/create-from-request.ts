import type { CreateRequestBody } from "@sandboxer/protocol";
import { createSandbox, type CreatedSandbox, type CreateRequest } from "./create.ts";
import type { ManagerContext } from "../context.ts";
import { planSandbox, type Manner } from "./plan.ts";
import type { VerbOptions } from "../observing/operations/tracked.ts";

/** Makes what a request asks for. */
export async function createFromRequest(
  context: ManagerContext,
  body: CreateRequestBody,
  manner: Manner,
  request: Pick<CreateRequest, "client" | "onOwnership">,
  options: VerbOptions = {},
): Promise<CreatedSandbox> {
  const plan = await planSandbox(context, body, manner);
  return createSandbox(context, { ...request, plan }, options);
}
