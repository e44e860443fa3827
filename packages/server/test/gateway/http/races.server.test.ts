import type { SandboxRecord } from "@sandboxer/protocol";
import { expect, test } from "vitest";
import { startTestServer } from "../../../../../test/kit/server/test-server.ts";
import { HttpClient, type ErrorAnswer } from "./support.ts";

const ROUNDS = 10;

async function stored(http: HttpClient): Promise<string> {
  const { id } = await http.create();
  await http.call("POST", `/v1/sandboxes/${id}/checkpoint`);
  return id;
}

test("changing a paused sandbox while it is resumed leaves it with its owner and the change", async () => {
  const http = new HttpClient(await startTestServer());
  for (let round = 0; round < ROUNDS; round++) {
    const id = await stored(http);
    const path = `/v1/sandboxes/${id}`;
    const [resumed, patched] = await Promise.all([
      http.call<SandboxRecord>("POST", `${path}/resume`),
      http.call<SandboxRecord>("PATCH", path, { labels: { a: "1" } }),
    ]);
    expect([resumed.status, patched.status]).toEqual([200, 200]);
    expect(await http.get(id)).toMatchObject({ state: "running", owner: { here: true }, labels: { a: "1" } });
    expect((await http.call("POST", `${path}/checkpoint`)).status).toBe(200);
    expect(await http.get(id)).toMatchObject({ labels: { a: "1" } });
  }
});

test("several changes of a stored sandbox at once are made one after the other", async () => {
  const http = new HttpClient(await startTestServer());
  const id = await stored(http);
  const names = ["n1", "n2", "n3", "n4"];
  const answers = await Promise.all(names.map((name) => http.call("PATCH", `/v1/sandboxes/${id}`, { name })));
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200]);
  expect(await http.get(id)).toMatchObject({ state: "stored", owner: null });
});

test("a sandbox that is deleted while it is resumed does not run", async () => {
  const server = await startTestServer();
  const http = new HttpClient(server);
  for (let round = 0; round < ROUNDS; round++) {
    const id = await stored(http);
    const path = `/v1/sandboxes/${id}`;
    const [, destroyed] = await Promise.all([http.call("POST", `${path}/resume`), http.call("DELETE", path)]);
    expect(destroyed.status).toBe(200);
    expect((await http.get(id)).state).toBe("destroyed");
  }
  expect(server.backend.runningCount).toBe(0);
});

test("two calls that resume it at once are both served", async () => {
  const http = new HttpClient(await startTestServer());
  for (let round = 0; round < ROUNDS; round++) {
    const id = await stored(http);
    const answers = await Promise.all([1, 2].map(() => http.call("POST", `/v1/sandboxes/${id}/resume`)));
    expect(answers.map(({ status }) => status)).toEqual([200, 200]);
    expect((await http.get(id)).epoch).toBe(2);
  }
});

test("a sandbox that is deleted while it is saved is deleted", async () => {
  const server = await startTestServer();
  const http = new HttpClient(server);
  const { id } = await http.create();
  const saving = Promise.withResolvers<void>();
  server.backend.faults.set("snapshot", { until: saving.promise });
  const saved = http.call("POST", `/v1/sandboxes/${id}/checkpoint`);
  await expect.poll(async () => (await http.get(id)).state).toBe("saving");
  const destroyed = http.call("DELETE", `/v1/sandboxes/${id}`);
  saving.resolve();
  expect((await saved).status).toBe(200);
  expect((await destroyed).status).toBe(200);
  expect((await http.get(id)).state).toBe("destroyed");
});

test("a sandbox that is deleted while it is created is not created", async () => {
  const server = await startTestServer();
  const http = new HttpClient(server);
  const never = Promise.withResolvers<void>();
  server.backend.faults.set("acquire", { until: never.promise });
  const made = http.call<ErrorAnswer>("POST", "/v1/sandboxes", {});
  const list = (): Promise<string[]> =>
    http.call<{ items: SandboxRecord[] }>("GET", "/v1/sandboxes").then(({ body }) => body.items.map(({ id }) => id));
  await expect.poll(list).toHaveLength(1);
  const [id = ""] = await list();
  expect((await http.call("DELETE", `/v1/sandboxes/${id}`)).status).toBe(200);
  const refused = await made;
  expect([refused.status, refused.body.error.code]).toEqual([410, "sandbox_destroyed"]);
  expect(await list()).toEqual([]);
});
