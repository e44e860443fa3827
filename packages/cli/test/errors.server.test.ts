import { SandboxerError } from "@sandboxer/protocol";
import { expect, test } from "vitest";
import { reportError } from "../src/error-funnel.ts";
import { runProgram } from "../src/program.ts";
import { fakeIo } from "./support/fake-io.ts";

test("an error for people has a message, a hint and the exit code of the table", () => {
  const io = fakeIo();
  const error = new SandboxerError("backend_unavailable", "No runsc.", { hint: "Get one." });
  expect(reportError(error, false, io)).toBe(10);
  expect(io.err()).toBe("sandboxer: No runsc.\n  Get one.\n");
  expect(io.out()).toBe("");
});

test("control characters from a sandbox do not reach the terminal", () => {
  const io = fakeIo();
  reportError(new SandboxerError("file_not_found", "/tmp/\u001B]0;x\u0007: not there", { hint: "a\nb" }), false, io);
  expect(io.err()).toBe("sandboxer: /tmp/�]0;x�: not there\n  a\nb\n");
});

test("an error for programs is JSON", () => {
  const io = fakeIo();
  const error = new SandboxerError("bad_request", "No.", { hint: "Yes.", details: { matches: ["a"] } });
  expect(reportError(error, true, io)).toBe(2);
  expect(JSON.parse(io.out())).toEqual({
    error: { code: "bad_request", message: "No.", hint: "Yes.", retryable: false, details: { matches: ["a"] } },
  });
  expect(io.err()).toBe("");
});

test("an unexpected error shows where it happened", () => {
  const io = fakeIo();
  expect(reportError(new TypeError("oops"), false, io)).toBe(1);
  expect(io.err()).toMatch(/oops[\s\S]*errors\.server\.test\.ts/);
});

test.each([
  [["bogus"], "unknown command"],
  [["serve", "--bogus"], "unknown option"],
  [["serve", "--port"], "argument missing"],
  [["serve", "--port", "x"], "flag --port"],
  [["serve", "--lease-ttl", "4hours"], "flag --lease-ttl"],
  [["serve", "--host", "0.0.0.0"], "without keys"],
  [[], "A command is missing"],
])("%j is refused with exit code 2", async (argv, message) => {
  const io = fakeIo();
  expect(await runProgram(argv, io)).toBe(2);
  expect(io.err()).toContain(message);
  const json = fakeIo();
  expect(await runProgram([...argv, "--json"], json)).toBe(2);
  if (argv.at(-1) !== "--port") expect(JSON.parse(json.out())).toMatchObject({ error: { code: "bad_request" } });
});

test.each([["gc", "--store", "/nonexistent"], ["doctor"], ["keys", "list"], ["config"]])(
  "%s starts no server, so that it need not have keys for its address",
  async (...argv) => {
    const io = fakeIo({ SANDBOXER_HOST: "0.0.0.0", SANDBOXER_DATA_DIRECTORY: "/nonexistent" });
    await runProgram(argv, io);
    expect(io.err()).not.toContain("without keys");
  },
);

test("--help is not an error", async () => {
  const io = fakeIo();
  expect(await runProgram(["serve", "--help"], io)).toBe(0);
  expect(io.out()).toContain("CHECKPOINT_AND_RESTORE_PATH");
});
