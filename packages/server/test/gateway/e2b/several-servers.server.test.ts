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
  const streamed: string[] = [];
  const onStdout = (text: string): void => void streamed.push(text);
  expect((await connected.commands.run("echo out; echo err >&2", { onStdout })).stderr).toBe("err\n");
  expect(streamed.join("")).toBe("out\n");
  const command = await connected.commands.run("read x; echo got $x", { background: true, stdin: true });
  await connected.commands.sendStdin(command.pid, "words\n");
  expect((await command.wait()).stdout).toBe("got words\n");
  await connected.files.makeDir("watched");
  const events: string[] = [];
  const watch = await connected.files.watchDir("watched", ({ name }) => void events.push(name));
  await connected.files.write("watched/a", "content");
  await expect.poll(() => events).toContain("a");
  await watch.stop();
  // Neither the URL nor a header names the sandbox or its server.
  expect(await (await fetch(await connected.downloadUrl("watched/a"))).text()).toBe("content");
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
