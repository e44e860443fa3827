import fc from "fast-check";
import { test, expect } from "vitest";
import { profileSchema } from "@sandboxer/protocol";
import { checkDocument } from "../../src/support/source-file/check-document.ts";
import { readTomlDocument } from "../../src/support/source-file/toml-document.ts";
import { readYamlDocument } from "../../src/support/source-file/yaml-document.ts";

const word = fc.constantFrom(
  ..."name: |backends: |ttl: |inputs: |env: |secret_refs: |setup: |\n|  |- |{|}|[|]|: |, |*a|&a |<<: |!x |!!binary |'|\"|#|>|?|%|---|...|=|\t|0x|1e9|~|true|[[|]]|__proto__|constructor".split(
    "|",
  ),
);
const text = fc.oneof(
  fc.string(),
  fc.array(fc.oneof({ weight: 4, arbitrary: word }, fc.string({ maxLength: 4 }))).map((words) => words.join("")),
);

test.each([
  ["YAML", readYamlDocument],
  ["TOML", readTomlDocument],
])("whatever is in a %s file, there is a value or a problem with its place", (_, read) => {
  fc.assert(
    fc.property(text, (content) => {
      const { value, problems } = checkDocument(read("f", content), profileSchema);
      expect(value === undefined).toBe(problems.length > 0);
      const lines = content.split(/\r\n|\r|\n/).length;
      for (const { line, column, message } of problems) {
        expect(message).not.toBe("");
        if (line === undefined) expect(message).toBe("is empty.");
        else expect(line >= 1 && line <= lines + 1 && (column ?? 0) >= 1).toBe(true);
      }
    }),
    { numRuns: 2000 },
  );
});
