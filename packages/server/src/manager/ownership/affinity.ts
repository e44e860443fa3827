import { type Affinity, SandboxerError, type ServerLabels } from "@sandboxer/protocol";

/** The required labels that a server does not have. */
export function missingLabels(labels: ServerLabels = {}, affinity: Affinity | null | undefined): readonly string[] {
  return Object.entries(affinity?.require ?? {}).flatMap(([key, value]) =>
    labels[key] === value ? [] : [`${key}=${value}`],
  );
}

/** How many of the preferred labels a server has. */
export function preferredLabels(labels: ServerLabels = {}, affinity: Affinity | null | undefined): number {
  return Object.entries(affinity?.prefer ?? {}).filter(([key, value]) => labels[key] === value).length;
}

/** Whether another server may do what this one refused with this error: it is full, or cannot run the sandbox. */
export function isPlaceProblem(error: unknown): error is SandboxerError {
  return isMisfit(error) || (error instanceof SandboxerError && error.details["full"] !== undefined);
}

/** Whether this server cannot run the sandbox, whatever its room. */
export function isMisfit(error: unknown): error is SandboxerError {
  return error instanceof SandboxerError && error.details["misfit"] !== undefined;
}

/** Whether this server can run the sandbox, and others have more of the preferred labels. */
export function isPreference(error: unknown): boolean {
  return isMisfit(error) && error.details["misfit"] === "preference";
}

/** Refuses a sandbox that requires labels which this server does not have. */
export function checkLabels(labels: ServerLabels | undefined, affinity: Affinity | null | undefined): void {
  const missing = missingLabels(labels, affinity);
  if (missing.length === 0) return;
  throw new SandboxerError("no_fitting_server", `The sandbox requires ${missing.join(", ")}; this server lacks that.`, {
    details: { misfit: "labels", missing },
  });
}
