import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { runProgram } from "../../src/program.ts";
import { fakeIo } from "../support/fake-io.ts";

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

test("exits 1 if a requirement is missing, prints a remedy to paste, and installs nothing", async () => {
  const io = emptyMachine();
  expect(await runProgram(["doctor"], io)).toBe(1);
  expect(io.out()).toMatch(/✗ missing +runsc/);
  expect(io.out()).toContain("npx @sandboxer/cli setup");
  expect(io.out()).toContain("apt-get install gcc libc6-dev make");
  expect(io.out()).toContain("Something that the server needs is missing.");
  expect(existsSync(join(directory, "cache"))).toBe(false);
  expect(existsSync(join(directory, "data"))).toBe(false);
  expect(existsSync(join(directory, "store"))).toBe(false);
});

test("--json lists each check with state, need and remedy", async () => {
  const io = emptyMachine();
  expect(await runProgram(["doctor", "--json"], io)).toBe(1);
  const report = JSON.parse(io.out()) as { ok: boolean; checks: { name: string }[] };
  expect(report.ok).toBe(false);
  const named = Object.fromEntries(report.checks.map((check) => [check.name, check]));
  expect(named["runsc"]).toMatchObject({ state: "missing", needed: true, remedy: "npx @sandboxer/cli setup" });
  expect(named["store"]).toMatchObject({ state: "found", message: expect.stringContaining("hard links") });
  expect(named["go"]).toMatchObject({ needed: false });
  expect(named["network for sandboxes"]).toMatchObject({ state: "unknown", needed: false });
  expect(named["root inside"]).toMatchObject({ state: "unknown", needed: false });
  expect(named["disk space"]).toMatchObject({ needed: true, version: expect.stringMatching(/GiB$/) });
});

test("the programs that start a sandbox are checked, and setpriv must have the needed option", async () => {
  const tools = async (): Promise<Record<string, unknown>> => {
    const io = emptyMachine();
    await runProgram(["doctor", "--json"], io);
    const { checks } = JSON.parse(io.out()) as { checks: { name: string }[] };
    return Object.fromEntries(checks.map((check) => [check.name, check]));
  };
  expect(await tools()).toMatchObject({
    setpriv: { state: "missing", needed: true, remedy: "apt-get install util-linux" },
    mkfifo: { state: "missing", needed: true, remedy: "apt-get install coreutils" },
  });
  const bin = join(directory, "bin");
  mkdirSync(bin);
  for (const name of ["setpriv", "mkfifo"]) writeFileSync(join(bin, name), "#!/bin/sh\nexit 0\n", { mode: 0o755 });
  expect(await tools()).toMatchObject({ setpriv: { state: "found" }, mkfifo: { state: "found" } });
  const ofBusybox = "#!/bin/sh\necho 'unrecognized option --pdeathsig' >&2\nexit 1\n";
  writeFileSync(join(bin, "setpriv"), ofBusybox, { mode: 0o755 });
  expect(await tools()).toMatchObject({
    setpriv: { state: "missing", message: expect.stringContaining("unrecognized option") },
  });
});
