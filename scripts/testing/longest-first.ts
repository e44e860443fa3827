import { BaseSequencer, type TestSpecification } from "vitest/node";

/** Short files whose tests take long, because their contracts, processes or searches are in other files. */
export const LONG_FILES = [
  "backends/daytona/contract.newest.gvisor.test.ts",
  "gateway/http/network.newest.gvisor.test.ts",
  "cli/test/pages.newest.gvisor.test.ts",
  "backends/gvisor/limits.newest.gvisor.test.ts",
  "gateway/e2b/packages.newest.gvisor.test.ts",
  "gateway/websocket/persistence.pinned.gvisor.test.ts",
  "gateway/websocket/handoff.newest.gvisor.test.ts",
  "backends/gvisor/contract.gvisor.test.ts",
  "system/resume/gvisor.newest.gvisor.test.ts",
  "system/crash/full-disk.newest.gvisor.test.ts",
  "system/crash/rolling-restart.newest.gvisor.test.ts",
  "gateway/http/encryption.newest.gvisor.test.ts",
  "backends/docker/checkpoints.docker.test.ts",
  "system/resume/docker.docker.test.ts",
  "backends/docker/contract.docker.test.ts",
  "console/test/accessibility.browser.test.ts",
  "cli/test/packages.server.test.ts",
  "gateway/http/interpreter.server.test.ts",
  "drain/drain-store-away.server.test.ts",
  "system/resume/fake.server.test.ts",
  "cli/test/terminal/terminal.server.test.ts",
  "store/directory-races.server.test.ts",
  "store/bucket-stores.store.test.ts",
];

/**
 * Begins with the files that take longest, so that none of them runs alone at the end. Without earlier results, vitest
 * sorts by the size of the files, and these would come last.
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
