import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { z } from "zod";
import { checkDocument } from "../../src/support/source-file/check-document.ts";
import { readSourceFile } from "../../src/support/source-file/read-source-file.ts";
import { formatProblem } from "../../src/support/source-file/source-document.ts";
import { readTomlDocument } from "../../src/support/source-file/toml-document.ts";
import { readYamlDocument } from "../../src/support/source-file/yaml-document.ts";

const schema = z.strictObject({
  name: z.string(),
  mode: z.enum(["fast", "careful"]).optional(),
  count: z.number().int().min(2).optional(),
  env: z.record(z.string().regex(/^[A-Z]+$/, "is not a valid variable name"), z.string()).optional(),
  limits: z.strictObject({ memory: z.number(), disk: z.number().optional() }).optional(),
  steps: z.array(z.strictObject({ run: z.string() })).optional(),
});

function yaml(text: string): string[] {
  return checkDocument(readYamlDocument("f", text), schema).problems.map(formatProblem);
}

function toml(text: string): string[] {
  return checkDocument(readTomlDocument("f", text), schema).problems.map(formatProblem);
}

describe("YAML", () => {
  test("all errors are reported at once, in the order of the file", () => {
    const text = [
      "mod: fast",
      "mode: fats",
      "count: 1",
      "env:",
      "  a b: x",
      "limits:",
      "  memroy: 1",
      "steps:",
      "  - run: x",
      "  - runs: y",
    ].join("\n");
    expect(yaml(text)).toEqual([
      "f:1:1: name: is missing; it must be a text.",
      "f:1:1: mod: there is no such key. Did you mean mode?",
      "f:2:7: mode: must be one of fast, careful. Did you mean fast?",
      "f:3:8: count: Too small: expected number to be >=2.",
      "f:5:3: env.a b: is not a valid variable name.",
      "f:6:1: limits.memory: is missing; it must be a number.",
      "f:7:3: limits.memroy: there is no such key. Did you mean memory?",
      "f:10:5: steps.1.run: is missing; it must be a text.",
      "f:10:5: steps.1.runs: there is no such key. Did you mean run?",
    ]);
  });

  test("a number is a text where a text is expected, as written", () => {
    const text = "name: 1.10\nenv:\n  PORT: 0x10\n  DEBUG: true\ncount: 3\n";
    expect(checkDocument(readYamlDocument("f", text), schema).value).toEqual({
      name: "1.10",
      env: { PORT: "0x10", DEBUG: "true" },
      count: 3,
    });
  });

  test.each([
    ["name: [", /^f:1:\d+: /],
    ["name: a\nname: b", /^f:2:1: Map keys must be unique/],
    ["name: a\n---\nname: b", /^f:\d:\d+: .*document/],
    ["name: !secret a", /^f:1:7: .*tag/],
    ["name: *nobody", /^f:1:7: There is no anchor/],
    ["- a", /^f:1:1: must be a map/],
    ["name:", /^f:1:\d+: name: is empty/],
    ["", /^f: is empty/],
  ])("%j is a problem with a place", (text, expected) => {
    const [problem] = yaml(text);
    expect(problem).toMatch(expected);
  });

  test("aliases that multiply are refused, not expanded", () => {
    const lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"];
    for (let level = 1; level < 12; level++) {
      lines.push(`a${level}: &a${level} [${Array.from({ length: 10 }, () => `*a${level - 1}`).join(", ")}]`);
    }
    expect(yaml(lines.join("\n"))).toEqual([expect.stringContaining("alias")]);
  });

  test("a value is never repeated", () => {
    const text = "name: a\nmode: hunter2\ncount: hunter2\nlimits: hunter2\nenv: [hunter2]\nsteps: {x: hunter2}\n";
    expect(yaml(text)).toHaveLength(5);
    expect(yaml(text).join()).not.toContain("hunter2");
    for (const broken of ["a: *hunter2", "a: !hunter2 b", "a: [b] hunter2", "a: |hunter2", "hunter2\na: b"]) {
      expect(yaml(broken).join()).toMatch(/^f:1:\d+: (?!.*hunter2)/);
    }
  });
});

describe("TOML", () => {
  test("problems have the places of their keys", () => {
    const text = `name = "a"\nmod = "x"\n\n[limits]\n  memory = "much"\n[[steps]]\nrun = "x"\n`;
    expect(toml(text)).toEqual([
      "f:2:1: mod: there is no such key. Did you mean mode?",
      "f:5:12: limits.memory: must be a number.",
    ]);
    expect(toml(`name = "a"\nlimits.memory = "x"\n`)).toEqual(["f:2:17: limits.memory: must be a number."]);
    expect(toml(`name = "a"\nlimits = { memory = "x" }\n`)).toEqual(["f:2:1: limits.memory: must be a number."]);
  });

  test("wrong syntax has its place, and the file is not quoted", () => {
    const [problem] = toml(`name = "a"\ncount = hunter2\n`);
    expect(problem).toMatch(/^f:2:\d+: /);
    expect(problem).not.toContain("hunter2");
  });

  test("a number is a text where a text belongs", () => {
    expect(checkDocument(readTomlDocument("f", "name = 7"), schema).value).toEqual({ name: "7" });
  });
});

describe("a file", () => {
  let folder: string;
  beforeEach(() => (folder = mkdtempSync(join(tmpdir(), "source-"))));
  afterEach(() => rmSync(folder, { recursive: true }));

  test("is read by its ending", () => {
    writeFileSync(join(folder, "a.toml"), `name = "x"`);
    writeFileSync(join(folder, "a.yaml"), `name: x`);
    expect(readSourceFile(join(folder, "a.toml")).value).toEqual({ name: "x" });
    expect(readSourceFile(join(folder, "a.yaml")).value).toEqual({ name: "x" });
  });

  test("that cannot be read is a problem", () => {
    writeFileSync(join(folder, "latin.yaml"), Buffer.from([0x61, 0x3a, 0x20, 0xe4]));
    writeFileSync(join(folder, "huge.yaml"), "#".repeat(1024 * 1024 + 1));
    const messages = ["missing.yaml", "", "latin.yaml", "huge.yaml"].map(
      (name) => readSourceFile(join(folder, name)).problems[0]?.message,
    );
    expect(messages).toEqual(["does not exist.", "is not a file.", "is not UTF-8.", "is larger than 1048576 bytes."]);
  });
});
