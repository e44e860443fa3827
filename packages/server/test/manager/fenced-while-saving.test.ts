import { SandboxerError } from "@sandboxer/protocol";
import { expect, test } from "vitest";
import type { ObjectStore } from "../../src/store/store.ts";
import { replaced } from "../collection/planted-bugs.ts";
import { SandboxClient } from "../http/processes/support.ts";
import { eventually } from "../websocket/support/eventually.ts";
import { startTestServer } from "../websocket/support/test-server.ts";

/** Fails the writes of images, once they were held for a while. */
function failingImages() {
  const held = Promise.withResolvers<void>();
  const reached = Promise.withResolvers<void>();
  let isOn = false;
  const wrapStore = (store: ObjectStore): ObjectStore =>
    replaced(store, {
      write: async (...given) => {
        if (!isOn || !given[0].endsWith(".img")) return await store.write(...given);
        reached.resolve();
        await held.promise;
        throw new SandboxerError("no_space", "The store is full.");
      },
    });
  return { wrapStore, reached: reached.promise, begin: () => (isOn = true), end: () => held.resolve() };
}

test("a server that is declared dead during a save which then fails does not go on with the sandbox", async () => {
  const images = failingImages();
  const server = await startTestServer({ wrapStore: images.wrapStore });
  const other = await startTestServer({ store: server.storeFolder ?? null });
  const box = await SandboxClient.create(server, { enable_checkpoint: true });
  await box.exec({ language: "bash", code: "echo old > file" });
  await box.call("POST", "/checkpoint", { leave_running: true });
  await box.exec({ language: "bash", code: "echo unsaved > file" });
  images.begin();
  const pause = box.call("POST", "/checkpoint");
  await images.reached;
  const before = server.instances.instanceId;
  await other.instances.markDead(before);
  await eventually("it has a new id", () => server.instances.instanceId !== before && !server.instances.frozen);
  images.end();
  expect((await pause).status).toBeGreaterThanOrEqual(500);
  expect(server.backend.runningCount).toBe(0);
  const there = new SandboxClient(other, box.id);
  await there.call("POST", "/resume");
  expect((await there.exec({ language: "bash", code: "cat file" })).stdout).toBe("old\n");
});
