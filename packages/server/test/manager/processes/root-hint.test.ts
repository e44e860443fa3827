import { expect, test } from "vitest";
import { rootHint } from "../../../src/manager/processes/root-hint.ts";

test.each([
  "E: Unable to acquire the dpkg frontend lock (/var/lib/dpkg/lock-frontend), are you root?",
  "ERROR: Unable to lock database: Permission denied",
  "Error: This command has to be run under the root user.",
  "sudo: effective uid is not 0, is /usr/bin/sudo on a file system with the 'nosuid' option set?",
])("a program that failed with %j is to be run as root", (line) => {
  expect(rootHint("box", `Reading package lists...\n${line}\n`)).toContain("sandboxer exec --user root box --");
});

test.each(["", "the root of the tree must be run", "cat: x: Permission denied"])("%j needs no root", (line) => {
  expect(rootHint("box", line)).toBeNull();
});
