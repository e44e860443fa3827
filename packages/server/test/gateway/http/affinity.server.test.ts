import { expect, test } from "vitest";
import { startTestServer, type TestServer } from "../../../../../test/kit/server/test-server.ts";
import { temporaryFolder } from "../../../../../test/kit/temporary-folder.ts";
import { call, known, NEVER, type Told } from "../relay/support.ts";

const GPU = { require: { pool: "gpu" } };

async function plainAndGpu(options: object = {}): Promise<{ plain: TestServer; gpu: TestServer }> {
  const store = await temporaryFolder();
  const plain = await startTestServer({ store, labels: { zone: "a" } });
  const gpu = await startTestServer({ store, labels: { zone: "b", pool: "gpu" }, ...options });
  await known(plain, 1);
  return { plain, gpu };
}

function post({ httpUrl }: TestServer, path: string, body: object = {}, headers: object = {}): Promise<Told> {
  return call("POST", `${httpUrl}/v1/${path}`, body, headers);
}

const at = ({ httpUrl }: TestServer) => ({ owner: { url: httpUrl } });

test("a sandbox runs only on servers with the labels that it requires, whichever server is asked", async () => {
  const { plain, gpu } = await plainAndGpu();
  const refused = await post(plain, "sandboxes", { affinity: GPU }, NEVER);
  expect([refused.status, refused.body.error]).toMatchObject([
    503,
    { code: "no_fitting_server", details: { missing: ["pool=gpu"] }, hint: expect.stringContaining("--server-labels") },
  ]);
  const { body: made } = await post(plain, "sandboxes", { affinity: GPU });
  expect(made).toMatchObject({ affinity: GPU, owner: { url: gpu.httpUrl, here: false } });
  expect((await post(plain, "sandboxes/acquire", { key: "k", affinity: GPU })).body).toMatchObject(at(gpu));
  const { body: snapshot } = await post(gpu, `sandboxes/${made.id}/snapshot`);
  // A sandbox that runs stays there.
  expect((await post(plain, `sandboxes/${made.id}/resume`)).body).toMatchObject({ epoch: 1, ...at(gpu) });
  await post(gpu, `sandboxes/${made.id}/checkpoint`);
  expect((await post(plain, `sandboxes/${made.id}/resume`)).body).toMatchObject({ epoch: 2, ...at(gpu) });
  const restored = await post(plain, `snapshots/${snapshot.id}/restore`);
  expect(restored.body).toMatchObject({ affinity: GPU, ...at(gpu) });
  expect((await post(plain, `snapshots/${snapshot.id}/restore`, { affinity: {} })).body).toMatchObject(at(plain));
  const { body: instances } = await call("GET", `${plain.httpUrl}/v1/instances`);
  expect(instances["items"]).toEqual(
    expect.arrayContaining([
      expect.objectContaining({ url: gpu.httpUrl, labels: { zone: "b", pool: "gpu" } }),
      expect.objectContaining({ here: true, labels: { zone: "a" } }),
    ]),
  );
});

test("if no server fits, the error names the labels that no live server has", async () => {
  const { plain, gpu } = await plainAndGpu({ maxSandboxes: 0 });
  const messageFor = async (require: object): Promise<unknown> => {
    const { status, body } = await post(plain, "sandboxes", { affinity: { require } });
    expect([status, body.error.code]).toEqual([503, "no_fitting_server"]);
    return (body.error as unknown as { message: string }).message;
  };
  expect(await messageFor({ pool: "tpu", zone: "a" })).toBe("No live server has pool=tpu, which the sandbox requires.");
  expect(await messageFor({ pool: "gpu", zone: "a" })).toContain("No live server has both pool=gpu and zone=a");
  expect(await messageFor({ pool: "gpu" })).toContain("The servers with pool=gpu have no room");
  await gpu.drain();
  const client = plain.connect("/create").send({ affinity: GPU });
  expect(await client.outcome()).toContain("CREATION_ERROR");
});

test("a preferred server with room gets a new sandbox, otherwise the server that was asked", async () => {
  const { plain, gpu } = await plainAndGpu({ maxSandboxes: 2 });
  const affinity = { prefer: { pool: "gpu" } };
  expect((await post(plain, "sandboxes", { affinity }, NEVER)).body).toMatchObject(at(plain));
  expect((await post(plain, "sandboxes", { affinity })).body).toMatchObject(at(gpu));
  const { body: acquired } = await post(plain, "sandboxes/acquire", { key: "k", affinity });
  expect(acquired).toMatchObject(at(gpu));
  expect((await post(plain, "sandboxes", { affinity })).body).toMatchObject(at(plain));
  expect((await post(plain, "sandboxes", { affinity: { prefer: { pool: "tpu" } } })).body).toMatchObject(at(plain));
  // It is not moved for a preference.
  await post(gpu, `sandboxes/${acquired.id}/checkpoint`);
  expect((await post(plain, `sandboxes/${acquired.id}/resume`)).body).toMatchObject(at(plain));
});

test("drained and offered sandboxes go to servers with their labels only", async () => {
  const store = await temporaryFolder();
  const labels = { pool: "gpu" };
  const leaving = await startTestServer({ store, labels });
  const plain = await startTestServer({ store });
  const gpu = await startTestServer({ store, labels });
  await known(leaving, 2);
  const ids = await Promise.all(
    [1, 2, 3].map(async () => (await post(leaving, "sandboxes", { affinity: GPU })).body.id),
  );
  expect(await leaving.drain()).toEqual([]);
  await expect.poll(() => gpu.manager.states()["running"]).toBe(3);
  expect([plain.backend.runningCount, leaving.problems]).toEqual([0, []]);
  const [id = ""] = ids;
  const head = await gpu.manager.pause(await gpu.manager.running(id));
  const left = { sandboxId: id, epoch: head.epoch ?? 0, from: gpu.instances.instanceId, reason: "drain" } as const;
  await expect(plain.manager.accept(left)).rejects.toMatchObject({ code: "no_fitting_server" });
});

test("a sandbox is not handed off to a server without its labels, until its affinity is changed", async () => {
  const { plain, gpu } = await plainAndGpu();
  const { id } = (await post(gpu, "sandboxes", { affinity: GPU })).body;
  const handedOff = (): Promise<Told> => post(gpu, `sandboxes/${id}/handoff`, { to: plain.instances.instanceId });
  expect((await handedOff()).body.error.code).toBe("no_fitting_server");
  expect(await gpu.manager.find(id)).toMatchObject({ state: "running", epoch: 1 });
  const changed = await call("PATCH", `${gpu.httpUrl}/v1/sandboxes/${id}`, { affinity: null });
  expect(changed.body).toMatchObject({ affinity: null });
  expect((await handedOff()).status).toBe(200);
  expect(await plain.manager.find(id)).toMatchObject({ state: "running", affinity: null, owner: { here: true } });
});

test("labels and affinities are checked", async () => {
  const server = await startTestServer();
  for (const affinity of [{ require: { "": "x" } }, { require: { zone: "a b" } }, { requires: { zone: "a" } }]) {
    const { status, body } = await post(server, "sandboxes", { affinity });
    expect([status, body.error.code]).toEqual([400, "bad_request"]);
  }
});
