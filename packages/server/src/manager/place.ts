import type { SandboxRecord } from "@sandboxer/protocol";
import type { AppliedProfile } from "../profiles/apply-profile.ts";

type Placement = NonNullable<SandboxRecord["placement"]>;

/** Which backend makes a sandbox, and why that one. */
export async function placeSandbox(applied: AppliedProfile | undefined, named: string): Promise<Placement> {
  const backend = applied?.backends[0] ?? named;
  return { backend, strategy: applied?.strategy ?? "explicit", reason: "named", passed_over: [] };
}
