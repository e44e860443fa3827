import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";

const read = (page: string): string => readFileSync(join(import.meta.dirname, "../../docs/reference", page), "utf8");

/** The members of each class on a page. */
function membersOf(page: string): ReadonlyMap<string, ReadonlySet<string>> {
  const [, ...sections] = read(page).split("\n## ");
  return new Map(
    sections.map((section) => {
      const members = [...section.matchAll(/^\| `(?:static |classmethod |get )*\*?(\w+)/gm)].map(
        ([, name = ""]) => name,
      );
      return [section.split("\n")[0] ?? "", new Set(members)] as const;
    }),
  );
}

/** Members that Python has in another form. */
const ELSEWHERE: Readonly<Record<string, string>> = {
  "Sandboxer.transport": "private; the options of the client are the same",
  "SandboxProcess.stdin": "write takes files and iterables",
  "SandboxSession.closed": "wait_closed",
  "SandboxSession.on_event": "events",
};

const python = membersOf("python-members.md");

// `exec` of Python returns its result; to follow a command there is `spawn`.
const classes = [...membersOf("sdk-members.md")].filter(([name]) => name !== "Execution");

test.each(classes)("%s of the TypeScript SDK has all its members in Python", (name, members) => {
  expect(members.size).toBeGreaterThan(3);
  const snake = [...members].map((member) => member.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`));
  const missing = snake.filter((member) => python.get(name)?.has(member) !== true);
  expect(missing.filter((member) => ELSEWHERE[`${name}.${member}`] === undefined)).toEqual([]);
});
