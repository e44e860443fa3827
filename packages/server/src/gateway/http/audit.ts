import { type RouteName, ROUTES } from "@sandboxer/protocol";
import { outcomeOf, type AuditEntry, type AuditLog } from "../access/audit-log.ts";
import type { OnMutation } from "./begin-call.ts";
import { routeSubject } from "./route-subject.ts";

type Subject = Pick<AuditEntry, "sandboxId" | "snapshotId" | "epoch">;

/**
 * Writes an audit line for each call that may have changed something, and for each sandbox that it created or ended.
 */
export function mutationAudit(audit: AuditLog): OnMutation {
  return (name, call, { answer, error, epoch, operation }) => {
    const { principal: who, address } = call.caller;
    const subject = subjectOf(name, call.params, idOf(answer));
    // The epoch of the ownership during the call; a new sandbox has it only afterwards.
    const known = epoch ?? (error === undefined ? (call.epoch ?? epochOf(answer)) : undefined);
    audit.record({ who, what: name, ...subject, epoch: known, ...outcomeOf(error), address });
    for (const more of [...madeIn(answer, subject), ...expiredIn(answer), ...(operation?.destroyed ?? []).map(ended)]) {
      audit.record({ who, what: name, outcome: "ok", ...more, address });
    }
  };
}

/** The subject of the path, and new objects; a path without an id creates a sandbox. */
function subjectOf(name: RouteName, params: unknown, made: string | undefined): Subject {
  const asked: Subject = routeSubject(ROUTES[name], params);
  if (name === "createSnapshot") return { ...asked, snapshotId: made };
  if (name === "restoreSnapshot" || asked.snapshotId === undefined) return { sandboxId: made, ...asked };
  return asked;
}

/** New sandboxes besides the subject. */
function madeIn(answer: unknown, subject: Subject): Subject[] {
  const { snapshot_id, items, token } = (answer ?? {}) as { snapshot_id?: string; items?: unknown[]; token?: string };
  if (snapshot_id !== undefined && items !== undefined) {
    return items.map((item) => ({ sandboxId: idOf(item), epoch: epochOf(item), snapshotId: snapshot_id }));
  }
  const isAnother = typeof token === "string" && idOf(answer) !== subject.sandboxId;
  return isAnother ? [{ sandboxId: idOf(answer), epoch: epochOf(answer) }] : [];
}

function expiredIn(answer: unknown): (Subject & Pick<AuditEntry, "outcome">)[] {
  const { applied, items, failed } = (answer ?? {}) as { applied?: boolean; items?: unknown[]; failed?: unknown[] };
  if (applied !== true) return [];
  const subject = (item: unknown): Subject => ({ sandboxId: idOf(item), epoch: epochOf(item) });
  return [
    ...(items ?? []).map((item) => ({ ...subject(item), outcome: "ok" as const })),
    ...(failed ?? []).map((item) => ({ ...subject(item), outcome: "failed" as const })),
  ];
}

function ended(sandboxId: string): Subject {
  return { sandboxId };
}

function idOf(value: unknown): string | undefined {
  const id = (value as { id?: unknown } | null | undefined)?.id;
  return typeof id === "string" ? id : undefined;
}

function epochOf(value: unknown): number | undefined {
  const epoch = (value as { epoch?: unknown } | null | undefined)?.epoch;
  return typeof epoch === "number" ? epoch : undefined;
}
