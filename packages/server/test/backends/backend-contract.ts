import { afterAll, beforeAll, describe } from "vitest";
import { connectionContract } from "./contract/connections.ts";
import { ContractContext, HOOK_TIMEOUT_MS, type OpenBackend, TEST_TIMEOUT_MS } from "./contract/context.ts";
import { executionContract } from "./contract/execution.ts";
import { fileContract } from "./contract/files.ts";
import { lifeContract } from "./contract/life.ts";
import { outputContract } from "./contract/output.ts";
import { pauseContract } from "./contract/pause.ts";
import { resumeContract } from "./contract/resuming.ts";
import { snapshotContract } from "./contract/snapshots.ts";
import { filesystemSnapshotContract } from "./contract/snapshots-of-files.ts";
import { stdinContract } from "./contract/stdin.ts";
import { terminalContract } from "./contract/terminal.ts";

const CONTRACTS: Readonly<Record<string, (context: ContractContext) => void>> = {
  execution: executionContract,
  output: outputContract,
  stdin: stdinContract,
  terminal: terminalContract,
  files: fileContract,
  connections: connectionContract,
  pause: pauseContract,
  "full snapshots": snapshotContract,
  "filesystem snapshots": filesystemSnapshotContract,
  life: lifeContract,
  resuming: resumeContract,
};

/**
 * What `backends/backend.ts` promises, as a user can observe it. Every backend passes it; what its capabilities deny is
 * skipped by name. The code that runs inside is of the subset that the fake backend understands too.
 *
 * `open` gives a backend of its own at each call; two of them live at the same time.
 */
export function testBackend(name: string, open: OpenBackend): void {
  describe(`contract of the ${name} backend`, { timeout: TEST_TIMEOUT_MS }, () => {
    const context = new ContractContext(open);
    beforeAll(() => context.start(), HOOK_TIMEOUT_MS);
    afterAll(() => context.finish(), HOOK_TIMEOUT_MS);

    for (const [subject, contract] of Object.entries(CONTRACTS)) {
      describe(`on ${subject}`, () => {
        contract(context);
      });
    }
  });
}
