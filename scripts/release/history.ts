import { execFileSync } from "node:child_process";

/** The longest subject of a commit: more is cut off where forges list commits. */
export const MAX_SUBJECT = 72;

/** Runs git in a repository and returns its output. Fails with git's message. */
export function git(root: string, ...args: readonly string[]): string {
  return execFileSync("git", args, { cwd: root, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] }).trim();
}

/**
 * The subjects since the last release that are too long, each with its commit. Before the first release, the rule counts
 * from the commit that introduced this file.
 */
export function longSubjects(root: string): string[] {
  const since = lastTag(root) ?? introduction(root);
  if (since === undefined) return [];
  // Forges write the subjects of merges.
  const log = git(root, "log", "--no-merges", "--format=%h %s", `${since}..HEAD`);
  return log.split("\n").filter((line) => line.slice(line.indexOf(" ") + 1).length > MAX_SUBJECT);
}

export function lastTag(root: string): string | undefined {
  const [tag] = git(root, "tag", "--list", "v*", "--merged", "HEAD", "--sort=-version:refname").split("\n");
  return tag === "" ? undefined : tag;
}

function introduction(root: string): string | undefined {
  const commits = git(
    root,
    "log",
    "--no-renames",
    "--diff-filter=A",
    "--format=%H",
    "--",
    "scripts/release/history.ts",
  );
  return commits.split("\n").findLast((commit) => commit !== "");
}
