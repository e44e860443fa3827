import { Sandbox } from "e2b";
import { expect, test } from "vitest";
import { temporaryFolder } from "../../../../../test/kit/temporary-folder.ts";
import { setE2bEnvironment, startForE2b } from "./sdk.ts";
import { startTestServer } from "../../../../../test/kit/server/test-server.ts";

test("every server of a store answers for every sandbox, which stays where it is", async () => {
  const store = await temporaryFolder();
  const owner = await startForE2b({ store });
  const sandbox = await Sandbox.create();
  const other = await startTestServer({ store });
  setE2bEnvironment(other);
  const { sandboxId } = sandbox;
  const connected = await Sandbox.connect(sandboxId, { timeoutMs: 600_000 });
  expect(await connected.isRunning()).toBe(true);
  expect((await connected.getInfo()).state).toBe("running");
  await expect.poll(async () => (await connected.getMetrics()).length).toBeGreaterThan(0);
  expect(owner.manager.epochOf(sandboxId)).toBe(1);
  expect(await connected.pause()).toBe(true);
  // It has no owner now, and is resumed by the server that is asked.
  const resumed = await Sandbox.connect(sandboxId);
  expect(await resumed.isRunning()).toBe(true);
  expect(other.manager.epochOf(sandboxId)).toBeGreaterThan(1);
  setE2bEnvironment(owner);
  expect(await Sandbox.kill(sandboxId)).toBe(true);
  expect(await Sandbox.kill(sandboxId)).toBe(false);
});
