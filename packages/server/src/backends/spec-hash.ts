import { createHash } from "node:crypto";
import { storedNetwork } from "@sandboxer/protocol";
import type { SandboxSpec } from "./backend.ts";

/** Equal for equal specs, in any order. Names of secrets count, their values do not. */
export function specHash(backend: string, spec: SandboxSpec): string {
  return createHash("sha256")
    .update(JSON.stringify(sorted({ backend, ...spec, network: storedNetwork(spec.network) })))
    .digest("hex")
    .slice(0, 32);
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).filter(([, entry]) => entry !== undefined);
  return Object.fromEntries(
    entries.toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([key, entry]) => [key, sorted(entry)]),
  );
}
