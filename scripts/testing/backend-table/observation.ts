import { testsOf, type VitestReport } from "../vitest-report.ts";

/** The result of one test of `packages/server/test/backends/backend-contract.ts` for one backend. */
export interface Observation {
  readonly backend: string;
  readonly subject: string;
  /** `unknown`: it was skipped because of the machine, not because of the backend. */
  readonly outcome: "held" | "failed" | "lacking" | "unknown";
  /** Why the backend lacks it. */
  readonly reason?: string;
  readonly instead?: string;
}

const BACKEND = /^contract of the (.+) backend$/;
const SUBJECT = /^on (.+)$/;

/** In the order of the report, which is that of the contract. */
export function observationsOf(report: VitestReport): Observation[] {
  return testsOf(report).flatMap(({ ancestorTitles, status, meta }) => {
    const at = ancestorTitles.findIndex((title) => BACKEND.test(title));
    const backend = BACKEND.exec(ancestorTitles[at] ?? "")?.[1];
    const subject = SUBJECT.exec(ancestorTitles[at + 1] ?? "")?.[1];
    if (backend === undefined || subject === undefined) return [];
    return [{ backend, subject, ...outcomeOf(status, meta?.lacking) }];
  });
}

function outcomeOf(
  status: string,
  lacking: { reason: string; instead?: string } | undefined,
): Pick<Observation, "outcome" | "reason" | "instead"> {
  if (status === "passed") return { outcome: "held" };
  if (status === "failed") return { outcome: "failed" };
  return lacking === undefined ? { outcome: "unknown" } : { outcome: "lacking", ...lacking };
}
