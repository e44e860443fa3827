import type { SandboxRecord } from "@sandboxer/client";
import { afterAll, beforeEach, expect, test, vi } from "vitest";

beforeEach(() => () => vi.unstubAllGlobals());
afterAll(() => void vi.resetModules());

test("new sandboxes are listed newest first, in whatever order their records arrive", async () => {
  vi.resetModules();
  vi.stubGlobal("location", new URL("http://127.0.0.1:8080/"));
  const { noteSandbox, sandboxes } = await import("../../src/live/sandboxes.ts");
  const record = (second: number): SandboxRecord =>
    ({ id: `created-${second}`, createdAt: `2026-11-16T12:00:0${second}.000Z` }) as SandboxRecord;
  for (const second of [2, 4, 1, 3, 2]) noteSandbox(record(second));
  expect([...sandboxes.value.keys()]).toEqual(["created-4", "created-3", "created-2", "created-1"]);
});
