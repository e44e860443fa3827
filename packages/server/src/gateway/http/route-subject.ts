import type { Route } from "@sandboxer/protocol";
import type { OperationSubject } from "../../manager/observing/operations/operation.ts";

/** The object that a call's path names; nothing for a path without an id. */
export function routeSubject({ path }: Route, params: unknown): OperationSubject {
  const { id } = (params ?? {}) as { readonly id?: string };
  if (id === undefined) return {};
  return path.startsWith("/v1/snapshots/") ? { snapshotId: id } : { sandboxId: id };
}
