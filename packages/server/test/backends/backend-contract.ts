import { afterAll, afterEach, beforeAll, beforeEach, describe } from "vitest";
import { connectionContract } from "./contract/connections.ts";
import { ContractContext, type ContractOptions, type OpenBackend } from "./contract/context.ts";
import { executionContract } from "./contract/execution.ts";
import { fileContract } from "./contract/files.ts";
import { isolationContract } from "./contract/isolation.ts";
import * as needs from "./contract/lacking.ts";
import { lifeContract } from "./contract/life.ts";
import { outputContract } from "./contract/output.ts";
import { pauseContract } from "./contract/pause.ts";
import { refusalContract } from "./contract/refusals.ts";
import { resumeContract } from "./contract/resuming.ts";
import { snapshotContract } from "./contract/snapshots.ts";
import { filesystemSnapshotContract } from "./contract/snapshots-of-files.ts";
import { stdinContract } from "./contract/stdin.ts";
import { terminalContract } from "./contract/terminal.ts";

/** Each is a row of the table in `docs/reference/backends.md`: without its need, it is skipped with the reason. */
const CONTRACTS: readonly [subject: string, define: (context: ContractContext) => void, need?: needs.Need][] = [
  ["commands, exit codes and signals", executionContract, needs.commands],
  ["output: both streams, every byte, at the reader's speed", outputContract, needs.commands],
  ["stdin and its end", stdinContract, needs.commands],
  ["terminals", terminalContract, needs.terminals],
  ["files", fileContract, needs.files],
  ["connections to ports inside the sandbox", connectionContract, needs.connections],
  ["pause and continue", pauseContract, needs.commands],
  ["snapshot: full, with memory and processes", snapshotContract, needs.fullSnapshots],
  ["snapshot: files", filesystemSnapshotContract, needs.filesystemSnapshots],
  ["resuming by key and after a stop", resumeContract, needs.resuming],
  ["isolation between sandboxes, and nothing left of a deleted one", isolationContract, needs.commands],
  ["unsupported calls are refused", refusalContract],
  ["health, cancellation, closing", lifeContract],
];

/**
 * The promises of `backends/backend.ts`, as a user can observe them. Every backend passes it; unsupported capabilities
 * are skipped by name. The code that runs inside is in the subset that the fake backend supports.
 *
 * `open` returns a new backend at each call; two of them run at the same time.
 */
export function testBackend(name: string, open: OpenBackend, options: ContractOptions = {}): void {
  describe(`contract of the ${name} backend`, () => {
    const context = new ContractContext(open, options);
    beforeAll(() => context.start());
    afterEach(() => context.endTest());
    afterAll(() => context.finish());

    for (const [subject, define, need] of CONTRACTS) {
      describe(`on ${subject}`, () => {
        beforeEach((test) => {
          const lacking = need?.(context);
          if (lacking !== undefined) needs.skipLacking(test, lacking);
        });
        define(context);
      });
    }
  });
}
