import { SandboxerError, type CreateRequestBody } from "@sandboxer/protocol";
import type { SandboxSpec } from "../../backends/backend.ts";
import { choosePlacement, type Placement, type PlacementCandidate } from "../../backends/placement.ts";
import type { AppliedProfile } from "../../profiles/apply-profile.ts";
import type { PlanContext } from "../room-contexts.ts";

/** Which backend makes a sandbox, and why that one. Without a profile there is nothing to choose. */
export async function placeSandbox(
  context: PlanContext,
  applied: AppliedProfile | undefined,
  request: CreateRequestBody,
  spec: SandboxSpec,
): Promise<Placement> {
  if (applied === undefined) {
    const { name } = context.backend(request.backend ?? context.options.defaultBackend);
    const reason = request.backend === undefined ? "the server's default" : "named in the request";
    return { backend: name, strategy: "explicit", reason, passed_over: [] };
  }
  const known = applied.backends.filter((name) => context.options.backends.has(name));
  if (known.length === 0) throw noneHere(context, applied);
  const candidates = await Promise.all(known.map((name) => candidateOf(context, name, spec)));
  const { passed_over, ...chosen } = choosePlacement(candidates, applied.strategy, request.backend);
  const absent = applied.backends.filter((name) => !known.includes(name));
  const unknown = absent.map((name) => ({ backend: name, reason: "this server does not have it" }));
  return { ...chosen, passed_over: [...passed_over, ...unknown] };
}

async function candidateOf(context: PlanContext, name: string, spec: SandboxSpec): Promise<PlacementCandidate> {
  const backend = context.backend(name);
  const health = await backend.probe();
  // What it would cost is asked for before there is a sandbox, so its id is nobody's.
  const cost = health.ok ? await backend.estimateCost?.({ sandboxId: "", spec }) : undefined;
  const { selfHosted } = backend.capabilities;
  return { name, selfHosted, health, ...(cost === undefined ? {} : { cost }) };
}

function noneHere({ options }: PlanContext, { profile, backends }: AppliedProfile): SandboxerError {
  const has = [...options.backends.keys()].join(", ");
  return new SandboxerError("not_supported", `${profile} needs ${backends.join(" or ")}; this server has ${has}.`);
}
