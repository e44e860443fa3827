import type { ReportStep, SetupStep } from "@sandboxer/server/setup";
import type { Io } from "../io.ts";

/** A step that ends within this time gets one line, not two. */
const SLOW_STEP_MS = 400;
const MARKS = { start: "…", done: "✓", skipped: "-", failed: "✗" } as const satisfies Record<
  SetupStep["state"],
  string
>;

/** Reports set-up steps on stderr: slow steps when they begin, every step when it ends. */
export function stepPrinter(io: Pick<Io, "stderr">): ReportStep {
  const announcements = new Map<string, NodeJS.Timeout>();
  return (step) => {
    clearTimeout(announcements.get(step.name));
    announcements.delete(step.name);
    if (step.state !== "start") return io.stderr(`${formatStep(step)}\n`);
    const announce = (): void => io.stderr(`${formatStep(step)}\n`);
    announcements.set(step.name, setTimeout(announce, SLOW_STEP_MS).unref());
  };
}

/** For programs: one JSON object on a line. */
export function stepJsonPrinter(io: Pick<Io, "stderr">): ReportStep {
  return (step) => io.stderr(`${JSON.stringify({ event: "setup", ...step })}\n`);
}

function formatStep(step: SetupStep): string {
  const duration = step.elapsedMs >= 1000 ? ` (${(step.elapsedMs / 1000).toFixed(1)} s)` : "";
  return `${MARKS[step.state]} ${step.message}${duration}`;
}
