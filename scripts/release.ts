/**
 * `npm run release`: releases the version that the changelog names, from a clean `main`. All packages get that version, the
 * changelog gets the date, and a commit and a tag are made. Nothing is pushed or published: the last lines say how.
 * `npm run release -- --dry-run` prints all of it and changes nothing. `--root` names another repository, for tests.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { PUBLIC_PACKAGES } from "./packages/public-package.ts";
import { dated, newestSection, problemsOf } from "./release/changelog.ts";
import { git, lastTag, longSubjects, MAX_SUBJECT } from "./release/history.ts";
import { filesAtVersion } from "./release/versions.ts";

const { values } = parseArgs({
  options: {
    "dry-run": { type: "boolean", default: false },
    root: { type: "string", default: new URL("..", import.meta.url).pathname },
  },
});
const { root, "dry-run": isDryRun } = values;
const say = (line: string): void => void process.stdout.write(`${line}\n`);

const changelog = readFileSync(join(root, "CHANGELOG.md"), "utf8");
const section = newestSection(changelog);
const { version } = section;
const tag = `v${version}`;
const date = new Date().toISOString().slice(0, 10);

const problems = [
  ...(section.date === "unreleased" ? [] : [`${version} was released on ${section.date}. Start a new section.`]),
  ...problemsOf(section).map((problem) => `CHANGELOG.md, ${version}: ${problem}`),
  ...longSubjects(root).map((line) => `A subject is longer than ${MAX_SUBJECT} characters: ${line}`),
  ...(git(root, "tag", "--list", tag) === "" ? [] : [`The tag ${tag} already exists.`]),
  ...(git(root, "status", "--porcelain") === "" ? [] : ["The working tree has changes. Commit them first."]),
  ...(git(root, "branch", "--show-current") === "main" ? [] : ["The current branch is not main."]),
];

say(
  `Release ${version}${isDryRun ? " (dry run: nothing is changed)" : ""}, after ${lastTag(root) ?? "no earlier release"}`,
);
for (const problem of problems) say(`problem: ${problem}`);
if (problems.length > 0 && !isDryRun) {
  say("Nothing was changed.");
  process.exitCode = 1;
} else {
  const files = filesAtVersion(root, version).set("CHANGELOG.md", dated(changelog, section, date));
  for (const [path, text] of files) {
    say(`${isDryRun ? "would write" : "wrote"} ${path}`);
    if (!isDryRun) writeFileSync(join(root, path), text);
  }
  const message = `Release ${version}`;
  if (!isDryRun) {
    git(root, "commit", "--quiet", "--message", message, "--", ...files.keys());
    git(root, "tag", "--annotate", tag, "--cleanup=verbatim", "--message", `${message}\n\n${section.text}\n`);
  }
  say(`${isDryRun ? "would commit" : "committed"} "${message}" and ${isDryRun ? "tag" : "tagged"} it ${tag} with:\n`);
  say(section.text);
  say(`\nPackages: ${PUBLIC_PACKAGES.map(({ manifest }) => manifest.name).join(", ")}, and sandboxer for Python.`);
  say(`Next: git push origin main ${tag}, npm run pack, npm publish for each tarball in build/packages,`);
  say("and, in clients/python, python -m hatchling build and python -m twine upload dist/*.");
  if (problems.length > 0) process.exitCode = 1;
}
