import { spawnSync } from "node:child_process";
import { findProgram } from "../../packages/server/src/setup/files.ts";
import { withGvisorTools } from "../../test/kit/services/gvisor-tools.ts";
import type { Suite } from "./suite.ts";

/**
 * Runs a suite in a network namespace of its own, if possible, so that others do not see the interfaces that its tests
 * make: Chromium cancels its downloads whenever the machine gets another interface.
 */
export function inOwnNetwork(suite: Suite): Suite {
  const ip = findProgram("ip", withGvisorTools(process.env["PATH"] ?? ""));
  if (ip === undefined || spawnSync("unshare", ["--net", "true"]).status !== 0) return suite;
  const begin = '"$0" link set lo up && exec "$@"';
  return { ...suite, argv: ["unshare", "--net", "sh", "-c", begin, ip, ...suite.argv] };
}
