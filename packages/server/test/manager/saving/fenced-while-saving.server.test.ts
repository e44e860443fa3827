import { SandboxerError } from "@sandboxer/protocol";
import { expect, onTestFinished, test } from "vitest";
import type { ObjectStore } from "../../../src/store/store.ts";
import { replaced } from "../../collection/planted-bugs.ts";
import { SandboxClient } from "../../gateway/http/processes/support.ts";
import { eventually } from "../../../../../test/kit/eventually.ts";
import { startTestServer } from "../../../../../test/kit/server/test-server.ts";

/** Holds the next write of an image until it is let go, or fails. */
function heldImages() {
  const held = Promise.withResolvers<void>();
  const reached = Promise.withResolvers<void>();
  let isOn = false;
  const wrapStore = (store: ObjectStore): ObjectStore =>
    replaced(store, {
      write: async (...given) => {
        if (isOn && given[0].endsWith(".img")) {
          isOn = false;
          reached.resolve();
          await held.promise;
        }
        return await store.write(...given);
      },
    });
  return {
    wrapStore,
    reached: reached.promise,
    begin: () => (isOn = true),
    letGo: () => held.resolve(),
    fail: () => held.reject(new SandboxerError("no_space", "The store is full.")),
  };
}

/** Two servers of one store, and a sandbox with an unsaved change whose save at the first server is held. */
async function duringSave() {
  const images = heldImages();
  const server = await startTestServer({ wrapStore: images.wrapStore });
  const other = await startTestServer({ store: server.storeFolder ?? null });
  const box = await SandboxClient.create(server, { enable_checkpoint: true });
  await box.exec({ language: "bash", code: "echo old > file" });
  await box.call("POST", "/checkpoint", { leave_running: true });
  await box.exec({ language: "bash", code: "echo unsaved > file" });
  images.begin();
  onTestFinished(images.letGo);
  const pause = box.call("POST", "/checkpoint");
  await images.reached;
  return { images, server, other, box, pause, there: new SandboxClient(other, box.id) };
}

const SHOW = { language: "bash", code: "cat file" };

test("a server that is declared dead during a failing save does not continue the sandbox", async () => {
  const { images, server, other, pause, there } = await duringSave();
  const before = server.instances.instanceId;
  await other.instances.markDead(before);
  await eventually("it has a new id", () => server.instances.instanceId !== before && !server.instances.frozen);
  images.fail();
  expect((await pause).status).toBeGreaterThanOrEqual(500);
  expect(server.backend.runningCount).toBe(0);
  await there.call("POST", "/resume");
  expect((await there.exec(SHOW)).stdout).toBe("old\n");
});

test("a save that ends after its sandbox was lost and claimed again changes nothing", async () => {
  const { images, server, other, box, pause, there } = await duringSave();
  const before = server.instances.instanceId;
  await other.instances.markDead(before);
  expect((await there.call("POST", "/resume")).status).toBe(200);
  await there.exec({ language: "bash", code: "echo new > file" });
  // It sees the new owner before it knows that it was declared dead.
  server.instances.rung(box.id);
  await eventually("it has lost it", () => server.instances.held(box.id) === undefined);
  await eventually("it has a new id", () => server.instances.instanceId !== before && !server.instances.frozen);
  expect((await there.call("POST", "/checkpoint")).status).toBe(200);
  expect((await box.call("POST", "/resume")).status).toBe(200);
  images.letGo();
  expect((await pause).body).toMatchObject({ error: { code: "lease_lost" } });
  expect((await box.exec(SHOW)).stdout).toBe("new\n");
  expect((await box.call("POST", "/checkpoint")).status).toBe(200);
  await there.call("POST", "/resume");
  expect((await there.exec(SHOW)).stdout).toBe("new\n");
});
