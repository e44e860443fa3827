import { execFileSync } from "node:child_process";
import fc from "fast-check";
import { expect, test } from "vitest";
import { quoteOnOneLine } from "../../../src/backends/compose-ssh/exec.ts";
import { quoteForShell, shellCommand } from "../../../src/support/shell-quote.ts";

const HOSTILE = [
  "",
  " ",
  "a b",
  "'",
  "''",
  `'"'"'`,
  "$(touch /tmp/x)",
  "`id`",
  "a\nb",
  "\n",
  "\\",
  "-rf",
  "*",
  "~",
  "!!",
  "#",
  "é😀",
  "$n",
  '"$n"',
];

/** The arguments that a shell parses from the text. */
function seenBy(shell: string, command: string): string[] {
  const print = `set -- ${command}; for a in "$@"; do printf '%s\\0' "$a"; done`;
  return execFileSync(shell, ["-c", print], { encoding: "utf8" }).split("\0").slice(0, -1);
}

test.each(["sh", "bash"])("%s passes hostile arguments unchanged", (shell) => {
  expect(seenBy(shell, shellCommand(HOSTILE))).toEqual(HOSTILE);
  const oneLine = HOSTILE.map(quoteOnOneLine).join(" ");
  expect(oneLine).not.toContain("\n");
  expect(seenBy(shell, `$empty; n='\n'; set -- ${oneLine}`)).toEqual(HOSTILE);
});

test("any argument survives the shell", () => {
  const argument = fc
    .string({ unit: "binary", maxLength: 40 })
    .filter((text) => text.isWellFormed() && !text.includes("\0"));
  // Many at once: a shell for each would be slow.
  const many = fc.array(argument, { minLength: 100, maxLength: 200 });
  fc.assert(
    fc.property(many, (argv) => {
      expect(seenBy("sh", shellCommand(argv))).toEqual(argv);
    }),
    { numRuns: 5 },
  );
});

test("an empty byte is refused", () => {
  expect(() => quoteForShell("a\0b")).toThrow(expect.objectContaining({ code: "bad_request" }));
});
