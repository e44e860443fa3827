import { BaseSequencer, type TestSpecification } from "vitest/node";

/** Short files whose tests take long, because they are contracts, other processes or searches that are written elsewhere. */
export const LONG_FILES = [
  "backends/daytona/contract.gvisor.test.ts",
  "crash/kill-at-step.gvisor.test.ts",
  "http/portable.gvisor.test.ts",
  "websocket/persistence.gvisor.test.ts",
  "backends/daytona/across-processes.gvisor.test.ts",
  "websocket/handoff.gvisor.test.ts",
  "gvisor/contract.gvisor.test.ts",
  "resume/gvisor.gvisor.test.ts",
  "crash/full-disk.gvisor.test.ts",
  "crash/rolling-restart.gvisor.test.ts",
  "http/encryption.gvisor.test.ts",
  "backends/docker/checkpoints.docker.test.ts",
  "resume/docker.docker.test.ts",
  "backends/docker/contract.docker.test.ts",
  "console/test/accessibility.browser.test.ts",
  "lease/model/model.test.ts",
  "resume/fake.test.ts",
  "cli/test/terminal.test.ts",
  "store/directory-races.test.ts",
  "store/bucket-stores.test.ts",
];

/**
 * Begins with the files that take longest, so that none of them is left alone at the end. Where nothing has been run yet, vitest goes by
 * the length of the files, and these would come last.
 */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    // oxlint-disable-next-line unicorn/no-array-sort -- It is the sequencer's, not an array's.
    return longestFirst(await super.sort(files), ({ moduleId }) => moduleId);
  }
}

/** The order is otherwise as before. */
export function longestFirst<File>(files: readonly File[], pathOf: (file: File) => string): File[] {
  const rankOf = (file: File): number => {
    const rank = LONG_FILES.findIndex((end) => pathOf(file).endsWith(`/${end}`));
    return rank === -1 ? LONG_FILES.length : rank;
  };
  return files.toSorted((one, other) => rankOf(one) - rankOf(other));
}
