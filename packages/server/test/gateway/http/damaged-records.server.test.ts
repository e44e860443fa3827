import { mkdir, readdir, readFile, rm, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { startTestServer, type TestServer } from "../../../../../test/kit/server/test-server.ts";
import { collect, expectDamageLeftAlone, type Listed, noise, storedSandboxes } from "./damaged-records.ts";
import { HttpClient } from "./support.ts";

/** The file that holds the newest version of a cell. */
async function newestOf(server: TestServer, ...folder: string[]): Promise<string> {
  const versions = join(server.storeFolder ?? "", ...folder);
  const names = (await readdir(versions)).filter((name) => name.startsWith("v")).toSorted();
  return join(versions, names.at(-1) ?? "");
}

const DAMAGES: readonly [string, (file: string) => Promise<void>][] = [
  ["is empty", (file) => truncate(file, 0)],
  ["is noise", (file) => writeFile(file, noise())],
  ["is zeros", async (file) => await writeFile(file, Buffer.alloc((await readFile(file)).length))],
  ["was cut in its middle", async (file) => await truncate(file, (await readFile(file)).length >> 1)],
  ["is the record of something else", async (file) => await writeFile(file, '{"nonce":"n","parent":""}\n{"format":1}')],
  [
    "is a folder",
    async (file) => {
      await rm(file);
      await mkdir(file);
    },
  ],
];

test.each(DAMAGES)("a head whose file %s is left alone and named, and everything else continues", async (_, damage) => {
  const server = await startTestServer();
  const http = new HttpClient(server);
  const ids = await storedSandboxes(http, 3);
  const file = await newestOf(server, ids[1] ?? "", ".head");
  await damage(file);
  await expectDamageLeftAlone(server, ids, file);
});

test("a head that was intact when the server read it first is named too", async () => {
  const server = await startTestServer();
  const http = new HttpClient(server);
  const ids = await storedSandboxes(http, 3);
  expect((await http.call<Listed>("GET", "/v1/sandboxes")).body).toMatchObject({ items: { length: 3 }, damaged: [] });
  const file = await newestOf(server, ids[1] ?? "", ".head");
  const whole = await readFile(file);
  await writeFile(file, noise());
  await expectDamageLeftAlone(server, ids, file);
  await writeFile(file, whole);
  expect((await http.call<Listed>("GET", "/v1/sandboxes")).body).toMatchObject({ items: { length: 3 }, damaged: [] });
  expect((await http.call("POST", `/v1/sandboxes/${ids[1]}/resume`)).status).toBe(200);
});

test("a head with an invalid spec does not break the list", async () => {
  const server = await startTestServer();
  const http = new HttpClient(server);
  const [first = "", last = ""] = await storedSandboxes(http, 2);
  const file = await newestOf(server, first, ".head");
  await writeFile(file, (await readFile(file, "utf8")).replace('"network": "none"', '"network": "host"'));
  const { body } = await http.call<Listed>("GET", "/v1/sandboxes");
  expect(body).toMatchObject({
    items: [{ id: last }],
    damaged: [{ id: first, object: `${first}/metadata.json`, message: expect.stringContaining("network") as unknown }],
  });
});

test("each damaged one is on one page", async () => {
  const server = await startTestServer();
  const http = new HttpClient(server);
  const ids = await storedSandboxes(http, 6);
  await http.call("GET", "/v1/sandboxes");
  for (const place of [0, 2, 3, 5]) await writeFile(await newestOf(server, ids[place] ?? "", ".head"), noise());
  for (const limit of [1, 2, 3, 10]) {
    const [items, damaged]: [string[], string[]] = [[], []];
    let cursor = "";
    do {
      const { body } = await http.call<Listed>("GET", `/v1/sandboxes?limit=${limit}${cursor}`);
      items.push(...body.items.map(({ id }) => id));
      damaged.push(...body.damaged.map(({ id }) => id));
      cursor = body.next_cursor === null ? "" : `&cursor=${body.next_cursor}`;
    } while (cursor !== "");
    expect(items).toEqual([ids[4], ids[1]]);
    expect(damaged.toSorted()).toEqual([ids[0], ids[2], ids[3], ids[5]].toSorted());
  }
});

test("a server with a damaged record counts as alive, and blocks no other", async () => {
  const server = await startTestServer();
  const gone = await startTestServer({ store: server.storeFolder ?? null });
  const http = new HttpClient(server);
  const [id = ""] = await storedSandboxes(http, 1);
  await gone.drain();
  await writeFile(await newestOf(server, "instances", `.${gone.instances?.instanceId}`), noise());
  expect((await http.call<Listed>("GET", "/v1/sandboxes")).body).toMatchObject({ items: [{ id }], damaged: [] });
  expect((await http.call("GET", "/v1/instances")).status).toBe(200);
  await collect(server);
  expect((await http.call("POST", `/v1/sandboxes/${id}/resume`)).status).toBe(200);
});

test("a missing checkpoint is not found, and nothing is claimed for it", async () => {
  const server = await startTestServer();
  const http = new HttpClient(server);
  const [id = ""] = await storedSandboxes(http, 1);
  const before = await http.get(id);
  const { status, body } = await http.call("POST", `/v1/sandboxes/${id}/resume`, { checkpoint: "checkpoint_1.img" });
  expect([status, body]).toMatchObject([404, { error: { code: "checkpoint_not_found" } }]);
  expect(await http.get(id)).toMatchObject({ state: "stored", epoch: before.epoch });
});
