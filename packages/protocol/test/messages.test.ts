import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { canMove, ERRORS, isSandboxId, LANGUAGES, parseClientMessage, STATUSES, TRANSITIONS } from "../src/index.ts";
import { asSandboxerError, resourcesInBytes, type SandboxState } from "../src/index.ts";

const parse = (value: unknown) => parseClientMessage(JSON.stringify(value));

describe("client messages", () => {
  test.each([
    [
      { language: "python", code: "x" },
      { type: "execute", language: "python", code: "x" },
    ],
    [
      { event: "stdin", data: "" },
      { type: "stdin", data: "" },
    ],
    [{ action: "checkpoint", extra: 1 }, { type: "checkpoint" }],
    [{ action: "kill_process" }, { type: "kill_process" }],
    [{ action: "kill_sandbox" }, { type: "kill_sandbox" }],
    [
      { action: "snapshot_filesystem", name: "n" },
      { type: "snapshot_filesystem", name: "n" },
    ],
    [{ action: "reconnect" }, { type: "reconnect", executionId: undefined, offset: undefined }],
    [
      { action: "reconnect", execution_id: "e", offset: 5 },
      { type: "reconnect", executionId: "e", offset: 5 },
    ],
    [
      { action: "reconnect", execution_id: 5, offset: -1 },
      { type: "reconnect", executionId: undefined, offset: undefined },
    ],
    [
      { action: "reconnect", offset: 1.5 },
      { type: "reconnect", executionId: undefined, offset: undefined },
    ],
  ])("%j", (value, message) => {
    expect(parse(value)).toEqual(message);
  });

  test.each([
    [[], "malformed"],
    [null, "malformed"],
    [{ language: "bash" }, "malformed"],
    [{ language: "bash", code: "a\0b" }, "malformed"],
    [{ language: "toString", code: "" }, "unsupported"],
    [{ action: "__proto__" }, "unsupported"],
    [{ event: "stdin" }, "stdin_without_data"],
    [{ action: "snapshot_filesystem", name: "" }, "snapshot_without_name"],
  ])("%j is %s", (value, type) => {
    expect(parse(value)).toMatchObject({ type, message: expect.any(String) });
  });

  test("any input results in a message or a reason, never an exception", () => {
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string(),
          fc.json(),
          fc.jsonValue().map((value) => JSON.stringify(value)),
        ),
        (text) => {
          expect(parseClientMessage(text)).toHaveProperty("type");
        },
      ),
    );
  });

  test("a refusal names the languages", () => {
    for (const language of LANGUAGES) expect(parse({})).toMatchObject({ message: expect.stringContaining(language) });
  });
});

describe("the creation message", () => {
  test("sizes are converted to bytes", () => {
    expect(resourcesInBytes({ memory_mb: 2, disk_mb: 3, file_mb: 1, processes: 9, cpus: 0.5 })).toEqual({
      memoryBytes: 2_097_152,
      diskBytes: 3_145_728,
      fileBytes: 1_048_576,
      processes: 9,
      cpus: 0.5,
    });
    expect(resourcesInBytes({})).toEqual({});
  });
});

test("ids are lower-case UUIDs, and nothing else", () => {
  expect(isSandboxId("3b1e723f-59ed-47eb-ba8c-429e0d9f143f")).toBe(true);
  for (const text of [
    "",
    "3B1E723F-59ED-47EB-BA8C-429E0D9F143F",
    "3b1e723f-59ed-47eb-ba8c-429e0d9f143f\n",
    "../3b1e723f-59ed-47eb-ba8c-429e0d9f143f",
    "instances",
  ]) {
    expect(isSandboxId(text)).toBe(false);
  }
});

test("the statuses match the protocol, each once", () => {
  expect(new Set(STATUSES).size).toBe(STATUSES.length);
  expect(STATUSES).toHaveLength(35);
  for (const status of STATUSES) expect(status).toMatch(/^SANDBOX_[A-Z_]+$/);
});

test("every state leads to gone, and none leads back", () => {
  const reaches = (from: SandboxState, seen = new Set<SandboxState>()): boolean =>
    from === "gone" || (!seen.has(from) && TRANSITIONS[from].some((next) => reaches(next, seen.add(from))));
  for (const state of Object.keys(TRANSITIONS) as SandboxState[]) {
    expect(reaches(state)).toBe(true);
    expect(canMove("gone", state)).toBe(false);
  }
});

test("every error has a status, an exit code and a next step", () => {
  for (const { httpStatus, exitCode, hint } of Object.values(ERRORS)) {
    expect(httpStatus).toBeGreaterThanOrEqual(400);
    expect(exitCode).toBeGreaterThan(0);
    expect(hint).toMatch(/\.$/);
  }
});

test("any thrown value becomes one kind of error at the border", () => {
  expect(asSandboxerError(Object.assign(new Error("full"), { code: "ENOSPC", path: "/x" }))).toMatchObject({
    code: "no_space",
    message: expect.stringContaining("/x"),
  });
  expect(asSandboxerError("odd")).toMatchObject({ code: "internal", message: "odd" });
});
