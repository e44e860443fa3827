import { expect, test } from "vitest";
import { FakeBackend } from "../../../server/src/backends/fake/index.ts";
import { startTestServer } from "../../../../test/kit/server/test-server.ts";
import { Sandbox, Sandboxer } from "../../src/index.ts";

test("a workspace is captured, explained, restored and moved to another backend", async () => {
  const { httpUrl } = await startTestServer({ moreBackends: [new FakeBackend({ name: "other", loads: [] })] });
  const client = new Sandboxer({ url: httpUrl });
  const box = await Sandbox.create({ client, name: "web" });
  await box.exec("echo one > /workspace/x");
  const snapshot = await box.snapshot({ mode: "workspace" });
  const carried = await client.snapshots.explain(snapshot.id, { backend: "other" });
  expect(carried).toMatchObject({ loadable: true, whyNot: null, memory: "lost", files: { count: 1 } });
  const restored = await Sandbox.restore(snapshot.id, { client, backend: "other" });
  expect(restored.carried).toEqual(carried);
  expect(restored.record).not.toHaveProperty("carried");
  const moved = await box.move({ backend: "other" });
  expect(moved.record).toMatchObject({ id: box.id, name: "web", backend: "other" });
  expect(moved.token).toBe(box.token);
  expect(await moved.exec("cat /workspace/x")).toMatchObject({ stdout: "one\n" });
  await expect(box.refresh()).resolves.toMatchObject({ state: "running", backend: "other" });
});
