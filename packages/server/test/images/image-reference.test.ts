import { describe, expect, it } from "vitest";
import { fullName, parseReference, pinnedName } from "../../src/images/image-reference.ts";

const DIGEST = `sha256:${"a".repeat(64)}`;

describe("the name of an image", () => {
  it.each([
    ["python", "docker.io/library/python:latest"],
    ["python:3.12-slim", "docker.io/library/python:3.12-slim"],
    ["team/tool", "docker.io/team/tool:latest"],
    ["docker.io/python", "docker.io/library/python:latest"],
    ["index.docker.io/team/tool:1", "docker.io/team/tool:1"],
    ["localhost/tool", "localhost/tool:latest"],
    ["localhost:5000/tool", "localhost:5000/tool:latest"],
    ["registry.example/team/deep/tool:v1.2_3", "registry.example/team/deep/tool:v1.2_3"],
    ["[::1]:5000/tool:1", "[::1]:5000/tool:1"],
    [`python@${DIGEST}`, `docker.io/library/python@${DIGEST}`],
    [`python:3.12@${DIGEST}`, `docker.io/library/python@${DIGEST}`],
  ])("%s means %s", (text, full) => {
    expect(fullName(parseReference(text, "docker.io"))).toBe(full);
  });

  it("takes the default registry for short names", () => {
    const reference = parseReference("python:3.12", "registry.example:5000");
    expect(fullName(reference)).toBe("registry.example:5000/python:3.12");
    expect(pinnedName(reference, DIGEST)).toBe(`registry.example:5000/python@${DIGEST}`);
  });

  it.each([
    "",
    "Python",
    "python:",
    "python:a b",
    "python@sha256:123",
    "python@md5:abc",
    "../etc/passwd",
    "a//b",
    "registry.example/",
    "user@registry.example/tool",
    "registry.example:99999999/tool",
    "evil.example?x=/tool",
    "a\0b",
    "-option",
    `${"a/".repeat(200)}a`,
  ])("%j is refused", (text) => {
    expect(() => parseReference(text, "docker.io")).toThrow(/is not valid/);
  });
});
