import { ROUTES } from "@sandboxer/protocol";
import { outcomeOf, type AuditEntry, type AuditLog } from "../access/audit-log.ts";
import type { ApiOptions } from "./api.ts";

/** Leaves a line in the audit log for each call that may have changed something. */
export function mutationAudit(audit: AuditLog): ApiOptions["onMutation"] {
  return (name, { caller, params, epoch }, { answer, error }) => {
    audit.record({
      who: caller.principal,
      what: name,
      epoch: epochOf(answer) ?? epoch,
      ...subjectOf(ROUTES[name].path, idOf(params), idOf(answer)),
      ...outcomeOf(error),
      address: caller.address,
    });
  };
}

/** What a path is about; a path without an id makes what it answers with. */
function subjectOf(
  path: string,
  asked: string | undefined,
  made: string | undefined,
): Pick<AuditEntry, "sandboxId" | "snapshotId"> {
  const isRestore = path.endsWith("/restore");
  if (path.startsWith("/v1/snapshots/")) return { snapshotId: asked, ...(isRestore ? { sandboxId: made } : {}) };
  return { sandboxId: asked ?? made, ...(path.endsWith("/snapshot") ? { snapshotId: made } : {}) };
}

function idOf(value: unknown): string | undefined {
  const id = (value as { id?: unknown } | null | undefined)?.id;
  return typeof id === "string" ? id : undefined;
}

function epochOf(value: unknown): number | undefined {
  const epoch = (value as { epoch?: unknown } | null | undefined)?.epoch;
  return typeof epoch === "number" ? epoch : undefined;
}
