import { fileURLToPath } from "node:url";

/** The command of the clone, which loads its sources one by one: tests can replace some of them. */
export const CLONE_COMMAND = fileURLToPath(new URL("../../../packages/cli/bin/sandboxer.mjs", import.meta.url));

/** The command that `npm test` has built, which starts in half of the time; if nothing was built, the clone's. */
export const COMMAND = process.env["SANDBOXER_TEST_COMMAND"] ?? CLONE_COMMAND;
