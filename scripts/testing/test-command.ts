import { rm } from "node:fs/promises";
import { join } from "node:path";
import { ROOT } from "../packages/public-package.ts";
import { stagePackages } from "../packages/stage-packages.ts";

/** Below the clone, so that the libraries of the packages are found there. */
const FOLDER = join(ROOT, "build/test-command");

/**
 * Builds the packages as they are installed, for servers that tests start as processes: `SANDBOXER_TEST_COMMAND` names the
 * command. Loading the clone's thousand files takes as much processor time as everything else that a server does until
 * it listens. Undefined: they could not be built, and the tests start the clone's.
 */
export async function buildTestCommand(report: (line: string) => void): Promise<string | undefined> {
  try {
    await rm(FOLDER, { recursive: true, force: true });
    const folderOf = ({ folder }: { readonly folder: string }): string =>
      join(FOLDER, "node_modules/@sandboxer", folder);
    await stagePackages(folderOf, { types: false });
    return join(folderOf({ folder: "cli" }), "bin/sandboxer.mjs");
  } catch (thrown) {
    report(
      `set-up: tests start servers from the sources: ${thrown instanceof Error ? thrown.message : String(thrown)}`,
    );
    return undefined;
  }
}
