import { expect, test } from "vitest";
import { describeArguments, parseArguments } from "../../bench/arguments.ts";
import { GROUPS } from "../../bench/measurements/index.ts";
import { SECTIONS } from "../../bench/report/sections.ts";

test("an unknown group is refused with a list of the known ones", () => {
  expect(() => parseArguments(["--only", "exec,typo"], ["exec", "create"])).toThrow(
    "There is no group typo. There are: exec, create.",
  );
});

test("the command in the report measures the same, and names no folder of this machine", () => {
  const options = parseArguments(["--runsc", "/opt/some/runsc", "--quick", "--only", "exec", "--out", "/x"], ["exec"]);
  expect(describeArguments(options)).toBe("npm run bench -- --runsc runsc --quick --only exec");
  expect(describeArguments(parseArguments(["--write-docs"], []))).toBe("npm run bench");
});

test("the page shows every group that can be measured", () => {
  expect(SECTIONS.flatMap(({ groups }) => groups)).toEqual(expect.arrayContaining(Object.keys(GROUPS)));
});
