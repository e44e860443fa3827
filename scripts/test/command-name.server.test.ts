import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { expect, test } from "vitest";

const ROOT = join(import.meta.dirname, "../..");

/** Written apart, so that this file does not contain it. */
const STRANGER = ["npx", "sandboxer"].join(" ");

test("no file names the npm package `sandboxer`, which belongs to a stranger; ours is @sandboxer/cli", () => {
  const searched = ["grep", "-I", "-l", "--untracked", "-E", `${STRANGER}|npm (install|i) (-g )?sandboxer\\b`];
  const found = spawnSync("git", searched, { cwd: ROOT, encoding: "utf8" });
  expect(found.stderr).toBe("");
  expect(found.stdout.split("\n").filter(Boolean)).toEqual([]);
});
