import { expect, test } from "vitest";
import { FakeBackend } from "../../src/backends/fake/index.ts";
import { announcement } from "../../src/checkpoints/snapshot-save.ts";
import type { ManagerContext } from "../../src/manager/context.ts";
import { popularSource } from "../../src/manager/snapshots/source.ts";
import { newSnapshot } from "../checkpoints/snapshot-samples.ts";

test("data that only its client can decrypt is not loaded ahead of time, for any caller", () => {
  const context = {} as ManagerContext;
  const snapshot = { ...announcement(newSnapshot(), "server-1"), kind: "fake-state" };
  const backend = new FakeBackend();
  expect(popularSource(context, snapshot).ahead?.(backend)).toBeDefined();
  const ofServer = { ...snapshot, encryption: { held_by: "server" as const, key: "main" } };
  expect(popularSource(context, ofServer).ahead?.(backend)).toBeDefined();
  const ofClient = { ...snapshot, encryption: { held_by: "client" as const, key: "0123456789abcdef" } };
  expect(popularSource(context, ofClient).ahead?.(backend)).toBeUndefined();
});
