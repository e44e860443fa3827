import { expect, test } from "vitest";
import { asTyped, commandName } from "../src/command-name.ts";

const io = { env: {} };

test("in the clone the command is typed with npx", () => {
  expect(commandName(io)).toBe("npx @sandboxer/cli");
});

test.each([
  ["sandboxer setup", "npx @sandboxer/cli setup"],
  ["sudo sandboxer doctor", "sudo npx @sandboxer/cli doctor"],
  ["Run `sandboxer setup --newest`.", "Run `npx @sandboxer/cli setup --newest`."],
  ["A sandboxer server did not answer.", "A sandboxer server did not answer."],
  ["Look at /var/lib/sandboxer first.", "Look at /var/lib/sandboxer first."],
])("a hint shows what to type: %s", (hint, typed) => {
  expect(asTyped(hint, io)).toBe(typed);
});
