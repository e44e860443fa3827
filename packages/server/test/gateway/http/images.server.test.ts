import type { ImageRecord, OperationRecordBody, RemovedImages } from "@sandboxer/protocol";
import { expect, test } from "vitest";
import { startTestServer } from "../../../../../test/kit/server/test-server.ts";
import type { SandboxBackend } from "../../../src/backends/backend.ts";
import type { FakeBackend } from "../../../src/backends/fake/index.ts";
import { FakeRegistry } from "../../images/support/fake-registry.ts";
import { madeImage, madeLayer, tarOf } from "../../images/support/made-image.ts";
import { openLibrary } from "../../images/support/open-library.ts";
import { type ErrorAnswer, HttpClient } from "./support.ts";

test("images are pulled with progress, listed, found by name and digest, and deleted", async () => {
  const registry = await FakeRegistry.start();
  const image = madeImage([await madeLayer([{ name: "hello", content: "hello" }])], { Cmd: ["sh"] });
  const name = registry.push(image);
  const http = new HttpClient(await startTestServer({ images: await openLibrary(registry) }));
  expect((await http.call("GET", "/v1/images")).body).toEqual({ items: [], next_cursor: null });

  const begun = await http.call<OperationRecordBody>(
    "POST",
    "/v1/images",
    { image: name },
    { headers: { prefer: "respond-async" } },
  );
  expect(begun).toMatchObject({ status: 202, body: { kind: "pull" } });
  const ended = await http.call<OperationRecordBody>("GET", `/v1/operations/${begun.body.id}?wait=59`);
  expect(ended.body).toMatchObject({
    state: "done",
    done_bytes: null,
    result: { digest: image.digest, names: [name], layers: 1, command: ["sh"], entrypoint: null },
  });
  const [listed] = (await http.call<{ items: ImageRecord[] }>("GET", "/v1/images")).body.items;
  expect(listed).toMatchObject({ digest: image.digest, in_use: false });
  for (const wanted of [name, "team/tool:1", image.digest, image.digest.slice(7, 20)]) {
    expect((await http.call<ImageRecord>("GET", `/v1/images/${encodeURIComponent(wanted)}`)).body).toEqual(listed);
  }
  const removed = await http.call<RemovedImages>("DELETE", `/v1/images/${encodeURIComponent(name)}`);
  expect(removed).toEqual({
    ...removed,
    status: 200,
    body: { removed: [image.digest], freed_bytes: expect.any(Number) },
  });
  expect((await http.call<ErrorAnswer>("GET", `/v1/images/${image.digest}`)).body.error.code).toBe("image_not_found");
  expect((await http.call<ErrorAnswer>("POST", "/v1/images", { image: "team/none:1" })).status).toBe(404);
  expect((await http.call<ErrorAnswer>("POST", "/v1/images", { image: "Not A Name" })).status).toBe(400);
  expect((await http.call<RemovedImages>("POST", "/v1/images/prune")).body).toEqual({ removed: [], freed_bytes: 0 });
});

test("an archive is imported", async () => {
  const server = await startTestServer({ images: await openLibrary(await FakeRegistry.start()) });
  const image = madeImage([await madeLayer([{ name: "hello", content: "hello" }])]);
  const blobs = [...image.blobs, [image.digest, image.manifest] as const];
  const archive = await tarOf([
    { name: "index.json", content: JSON.stringify({ manifests: [{ digest: image.digest, size: 1 }] }) },
    ...blobs.map(([digest, content]) => ({ name: `blobs/sha256/${digest.slice(7)}`, content })),
  ]);
  const send = (query: string, body: Uint8Array): Promise<Response> =>
    fetch(`${server.httpUrl}/v1/images/import${query}`, {
      method: "POST",
      body,
      headers: { "content-type": "application/x-tar" },
    });
  const imported = await send("?name=docker.io/team/tool:1", archive);
  expect(imported.status).toBe(200);
  expect(await imported.json()).toMatchObject({ digest: image.digest, names: ["docker.io/team/tool:1"] });
  expect((await send("", archive)).status).toBe(400);
  expect((await send("?name=x", Buffer.alloc(1000, 1))).status).toBe(400);
});

test("a server whose backend keeps its images itself reports it", async () => {
  const http = new HttpClient(await startTestServer());
  expect((await http.call<ErrorAnswer>("GET", "/v1/images")).body.error).toMatchObject({ code: "not_supported" });
});

/** Its sandboxes have an image with an entrypoint. */
function withEntrypoint(backend: FakeBackend): SandboxBackend {
  const acquire: SandboxBackend["acquire"] = async (...given) =>
    Object.assign(await backend.acquire(...given), { imageCommand: ["sh", "-c", "echo started; sleep 1000"] });
  return new Proxy<SandboxBackend>(backend, {
    get: (target, name) => {
      if (name === "acquire") return acquire;
      const value: unknown = Reflect.get(target, name);
      return typeof value === "function" ? (value.bind(target) as unknown) : value;
    },
  });
}

test("the image's entrypoint is started on request", async () => {
  const http = new HttpClient(await startTestServer({ wrapBackend: withEntrypoint }));
  const processes = async (id: string): Promise<readonly { detached: boolean; state: string }[]> =>
    (await http.call<{ items: { detached: boolean; state: string }[] }>("GET", `/v1/sandboxes/${id}/processes`)).body
      .items;
  expect(await processes((await http.create()).id)).toEqual([]);
  const { id } = await http.create({ entrypoint: true });
  expect(await processes(id)).toMatchObject([{ detached: true, state: "running" }]);
});

test("a requested entrypoint that the image lacks is refused, and nothing is left", async () => {
  const http = new HttpClient(await startTestServer());
  const refused = await http.call<ErrorAnswer>("POST", "/v1/sandboxes", { entrypoint: true });
  expect(refused).toMatchObject({ status: 400, body: { error: { code: "bad_request" } } });
  expect((await http.call<{ items: unknown[] }>("GET", "/v1/sandboxes")).body.items).toEqual([]);
});
