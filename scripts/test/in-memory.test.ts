import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { inMemory } from "../testing/in-memory.ts";
import { runSuite } from "../testing/run-suite.ts";
import type { Suite } from "../testing/suite.ts";

const SUITE: Suite = { name: "some", argv: ["true"], timeoutMs: 60_000, vitest: false };

test("temporary files stay on disk if there is no memory folder, or only a small one", () => {
  expect(inMemory(SUITE, "/proc")).toBe(SUITE);
  expect(inMemory(SUITE, "/nonexistent")).toBe(SUITE);
  expect(inMemory(SUITE, "/dev/shm", Number.MAX_SAFE_INTEGER)).toBe(SUITE);
});

test("a suite gets a folder for its temporary files, which is removed with everything in it", async () => {
  const parent = mkdtempSync(join(tmpdir(), "sandboxer-test-"));
  onTestFinished(() => rmSync(parent, { recursive: true }));
  const writes = `case "$TMPDIR" in ${parent}/*) echo text > "$TMPDIR/left";; *) exit 1;; esac`;
  const suite = { ...SUITE, argv: ["sh", "-c", writes], temporaryIn: parent };
  expect(await runSuite(suite, "at the end")).toMatchObject({ passed: 1, failed: 0 });
  expect(readdirSync(parent)).toEqual([]);
});
