import { expect, test } from "vitest";
import { eventually } from "../../../../../test/kit/eventually.ts";
import { startTestServer, type TestServer } from "../../../../../test/kit/server/test-server.ts";
import { meanwhile } from "../../../../../test/kit/meanwhile.ts";

const DURABLE = { enable_checkpoint: true };

interface Upload {
  readonly status: Promise<number>;
  /** The rest of the file, and its end. */
  readonly finish: () => void;
}

/** A file that is on its way into a sandbox, and of which the first part is there. */
async function beginUpload(server: TestServer, id: string): Promise<Upload> {
  const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>();
  const writer = writable.getWriter();
  const answer = fetch(`${server.httpUrl}/v1/sandboxes/${id}/files?path=/workspace/big`, {
    method: "PUT",
    headers: { "content-type": "application/octet-stream" },
    body: readable,
    duplex: "half",
  });
  await writer.write(Buffer.from("one "));
  const sandbox = await server.live(id);
  await eventually("it is under way", () => sandbox.held);
  const finish = (): void => {
    void writer.write(Buffer.from("two"));
    void writer.close();
  };
  return { status: answer.then(({ status }) => status), finish };
}

function saves(server: TestServer): number {
  return server.operations.filter(({ operation }) => operation === "checkpoint").length;
}

test("a save after a disconnect waits for a file that is being transferred", async () => {
  const server = await startTestServer();
  const { client, id } = await server.create({ ...DURABLE, on_disconnect: "checkpoint" });
  const sandbox = await server.live(id);
  const upload = await beginUpload(server, id);
  await client.leave();
  await eventually("the client disconnected", () => sandbox.client === undefined);
  await meanwhile(100);
  expect([saves(server), sandbox.state]).toEqual([0, "running"]);
  upload.finish();
  expect(await upload.status).toBeLessThan(300);
  await eventually("it is saved then", () => saves(server) === 1);
  const again = server.attach(id);
  await again.until("RUNNING");
  expect(await again.run("bash", "cat /workspace/big").until("EXECUTION_DONE")).toContain("out:one two");
});

test("a drain does not wait for an endless file", async () => {
  const server = await startTestServer();
  const { client, id } = await server.create({ ...DURABLE, on_disconnect: "checkpoint" });
  const upload = await beginUpload(server, id);
  await client.leave();
  await server.manager.drain();
  expect([saves(server), server.manager.states()]).toEqual([1, {}]);
  upload.finish();
  await upload.status;
});

test("a sandbox stays where it is while a file is uploaded to it", async () => {
  const server = await startTestServer();
  const other = await startTestServer({ store: server.storeFolder ?? null });
  const { client, id } = await server.create(DURABLE);
  const sandbox = await server.live(id);
  await client.leave();
  await eventually("the client disconnected", () => sandbox.client === undefined);
  const upload = await beginUpload(server, id);
  expect(await other.attach(id).untilClosed()).toEqual(["RESTORING", "IN_USE", 1011]);
  upload.finish();
  expect(await upload.status).toBeLessThan(300);
  const moved = await other.attachWhenFree(id);
  expect(await moved.run("bash", "cat /workspace/big").until("EXECUTION_DONE")).toContain("out:one two");
});
