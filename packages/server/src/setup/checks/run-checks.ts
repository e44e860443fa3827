import type { Check, CheckContext, CheckResult } from "./check.ts";
import { checkEngine } from "./engine-checks.ts";
import {
  checkCgroups,
  checkInterpreters,
  checkKernel,
  checkKvm,
  checkOperatingSystem,
  checkRoot,
} from "./host-checks.ts";
import { checkDiskSpace, checkImage, checkStore } from "./storage-checks.ts";
import { checkDocker, checkGo, checkTools } from "./tool-checks.ts";

const CHECKS: readonly Check[] = [
  checkOperatingSystem,
  checkRoot,
  checkKernel,
  checkEngine,
  checkTools,
  checkKvm,
  checkCgroups,
  checkInterpreters,
  checkImage,
  checkDiskSpace,
  checkStore,
  checkGo,
  checkDocker,
];
const CHECK_TIMEOUT_MS = 60_000;

/** All checks of `doctor`, in order. A check that throws becomes a result too. */
export async function runChecks(context: Omit<CheckContext, "signal">, checks = CHECKS): Promise<CheckResult[]> {
  const results = await Promise.all(
    checks.map(async (check) => {
      try {
        return await check({ ...context, signal: AbortSignal.timeout(CHECK_TIMEOUT_MS) });
      } catch (thrown) {
        const message = `could not be checked: ${(thrown as Error).message}`;
        return { name: check.name, state: "unknown" as const, needed: false, message };
      }
    }),
  );
  return results.flat();
}

export function isHealthy(results: readonly CheckResult[]): boolean {
  return results.every((result) => !(result.needed && result.state === "missing"));
}
