import { randomUUID } from "node:crypto";
import type { AcquireRequest, SandboxIdentity, SandboxSpec } from "../../../src/backends/backend.ts";

/** For a sandbox that can be found again, by default. */
export function requestFor(
  identity: Partial<SandboxIdentity> | undefined = {},
  spec: Partial<SandboxSpec> = {},
): AcquireRequest {
  return {
    sandboxId: randomUUID(),
    spec: { env: {}, resources: {}, network: "none", ...spec },
    ...(identity === undefined
      ? {}
      : { identity: { key: "my-convo", specHash: "hash-1", owner: "here", idleTtlMs: 3_600_000, ...identity } }),
  };
}
