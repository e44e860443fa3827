import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { runProgram } from "../src/program.ts";
import { fakeIo } from "./fake-io.ts";

let directory: string;

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "doctor-"));
});
afterEach(() => rmSync(directory, { recursive: true }));

/** A machine with nothing on PATH and an empty cache. */
function emptyMachine() {
  return fakeIo({
    PATH: join(directory, "bin"),
    XDG_CACHE_HOME: join(directory, "cache"),
    XDG_DATA_HOME: join(directory, "data"),
    CHECKPOINT_AND_RESTORE_PATH: join(directory, "store"),
  });
}

test("exits 1 when something needed is missing, with a remedy to paste, and installs nothing", async () => {
  const io = emptyMachine();
  expect(await runProgram(["doctor"], io)).toBe(1);
  expect(io.out()).toMatch(/✗ missing +runsc/);
  expect(io.out()).toContain("npx sandboxer setup");
  expect(io.out()).toContain("apt-get install gcc libc6-dev make");
  expect(io.out()).toContain("Something that is needed is missing.");
  expect(existsSync(join(directory, "cache"))).toBe(false);
  expect(existsSync(join(directory, "data"))).toBe(false);
  expect(existsSync(join(directory, "store"))).toBe(false);
});

test("--json has each thing with state, need and remedy", async () => {
  const io = emptyMachine();
  expect(await runProgram(["doctor", "--json"], io)).toBe(1);
  const report = JSON.parse(io.out()) as { ok: boolean; checks: { name: string }[] };
  expect(report.ok).toBe(false);
  const named = Object.fromEntries(report.checks.map((check) => [check.name, check]));
  expect(named["runsc"]).toMatchObject({ state: "missing", needed: true, remedy: "npx sandboxer setup" });
  expect(named["store"]).toMatchObject({ state: "found", message: expect.stringContaining("hard links") });
  expect(named["go"]).toMatchObject({ needed: false });
  expect(named["network for sandboxes"]).toMatchObject({ state: "unknown", needed: false });
  expect(named["disk space"]).toMatchObject({ needed: true, version: expect.stringMatching(/GiB$/) });
});
