import { expect, test } from "vitest";
import type { SandboxBackend } from "../../src/backends/backend.ts";
import { FakeBackend } from "../../src/backends/fake/index.ts";
import { LazyBackend } from "../../src/backends/lazy-backend.ts";

test("an opened backend reports its warm pool, its defaults and its workspace folder", async () => {
  const forgotten: string[] = [];
  let stopped = false;
  const own: Partial<SandboxBackend> = {
    defaultResources: { memoryBytes: 1 << 20 },
    workspaceFolder: "/home/user",
    warm: { max: 2, ready: 1, preparing: 0, handedOut: 0, missed: 0, failed: 0, expired: 0 },
    forgetPrepared: (id) => void forgotten.push(id),
    stopPreparing: async () => void (stopped = true),
  };
  const inner: SandboxBackend = Object.assign(new FakeBackend(), own);
  const { name, capabilities, loads = [] } = inner;
  const lazy = new LazyBackend({ name, capabilities, loads, open: async () => inner });
  expect([lazy.warm, lazy.defaultResources, lazy.workspaceFolder]).toEqual([undefined, undefined, undefined]);
  await lazy.stopPreparing();
  expect(stopped).toBe(false);

  await lazy.probe();
  expect(lazy).toMatchObject({ warm: own.warm, defaultResources: own.defaultResources, workspaceFolder: "/home/user" });
  lazy.forgetPrepared("a state");
  await lazy.stopPreparing();
  expect([forgotten, stopped]).toEqual([["a state"], true]);
});
