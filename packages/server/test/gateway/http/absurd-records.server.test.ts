import { readdir, readFile, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test, vi } from "vitest";
import { startTestServer, type TestServer } from "../../../../../test/kit/server/test-server.ts";
import { type Listed, storedSandboxes } from "./damaged-records.ts";
import { type ErrorAnswer, HttpClient } from "./support.ts";

/** Changes the newest version of a record, which stays one that JSON can read. */
async function amend(server: TestServer, folder: string, change: (text: string) => string): Promise<void> {
  const versions = join(server.storeFolder ?? "", folder);
  const newest = (await readdir(versions)).filter((name) => name.startsWith("v")).toSorted();
  const file = join(versions, newest.at(-1) ?? "");
  const before = await readFile(file, "utf8");
  const after = change(before);
  expect(after).not.toBe(before);
  await writeFile(file, after);
}

const ABSURD: readonly [string, (text: string) => string][] = [
  ["an epoch of 2^53 - 1", (text) => text.replace(/"epoch": \d+/, '"epoch": 9007199254740991')],
  ["a size that no sum can hold", (text) => text.replace(/"size_bytes": \d+/, '"size_bytes": 9007199254740991')],
  ["an idle timeout without an end", (text) => text.replace(/"idle_timeout": \d+/, '"idle_timeout": 1e308')],
  ["half a byte of memory", (text) => text.replace(/"resources": \{/, '"resources": {"memoryBytes": 0.5')],
  ["memory without an end", (text) => text.replace(/"resources": \{/, '"resources": {"memoryBytes": 1e300')],
  ["a checkpoint of no time", (text) => text.replace(/"created_at": "[^"]+"/, '"created_at": "yesterday"')],
  ["an expiry that is no time", (text) => text.replace(/"expires_at": null/, '"expires_at": "2026-99-99T00:00:00Z"')],
  ["a name of a megabyte", (text) => text.replace(/"name": "box-1"/, `"name": "${"x".repeat(1_000_000)}"`)],
  ["a copy that no id can name", (text) => text.replace(/"copy": 0/, '"copy": 9007199254740991')],
];

test.each(ABSURD)("a head with %s is named, and breaks no list", async (_, change) => {
  const server = await startTestServer();
  const http = new HttpClient(server);
  const [first = "", absurd = "", last = ""] = await storedSandboxes(http, 3);
  await amend(server, join(absurd, ".head"), change);
  const resumed = await http.call<ErrorAnswer>("POST", `/v1/sandboxes/${absurd}/resume`);
  expect([resumed.status, resumed.body.error?.code]).toEqual([422, "image_damaged"]);
  const one = await http.call<ErrorAnswer>("GET", `/v1/sandboxes/${absurd}`);
  expect([one.status, one.body.error?.code]).toEqual([422, "image_damaged"]);
  for (const path of ["/v1/sandboxes", "/v1/sandboxes?limit=1", "/v1/instances", "/v1/snapshots"]) {
    expect([path, (await http.call("GET", path)).status]).toEqual([path, 200]);
  }
  const { body } = await http.call<Listed>("GET", "/v1/sandboxes");
  expect([body.items.map(({ id }) => id), body.damaged.map(({ id }) => id)]).toEqual([[last, first], [absurd]]);
});

test("an imported head with an invalid time keeps its sandbox, and its position in pages", async () => {
  const server = await startTestServer();
  const http = new HttpClient(server);
  const [first = "", last = ""] = await storedSandboxes(http, 2);
  await amend(server, join(first, ".head"), (text) => text.replace(/"createdAt": "[^"]+"/, '"createdAt": "some day"'));
  const page = await http.call<Listed>("GET", "/v1/sandboxes?limit=1");
  expect(page.body.items.map(({ id }) => id)).toEqual([last]);
  const next = await http.call<Listed>("GET", `/v1/sandboxes?limit=1&cursor=${page.body.next_cursor}`);
  expect(next.body.items.map(({ id }) => id)).toEqual([first]);
  expect((await http.call("POST", `/v1/sandboxes/${first}/resume`)).status).toBe(200);
});

test.each([
  [
    "a size that no sum can hold",
    (text: string) => text.replace(/"size_bytes": \d+/, '"size_bytes": 9007199254740991'),
  ],
  ["no time", (text: string) => text.replace(/"created_at": "[^"]+"/, '"created_at": "yesterday"')],
  [
    "the id of another",
    (text: string) => text.replace(/"id": "[^"]+"/, '"id": "00000000-0000-4000-8000-000000000000"'),
  ],
])("a snapshot's record with %s is named, and breaks no list", async (_, change) => {
  const server = await startTestServer();
  const http = new HttpClient(server);
  const { id } = await http.create();
  const ids: string[] = [];
  for (let n = 0; n < 2; n++) {
    ids.push((await http.call<{ id: string }>("POST", `/v1/sandboxes/${id}/snapshot`)).body.id);
  }
  await amend(server, join("snapshots", ids[0] ?? "", ".record"), change);
  const listed = await http.call<Record<"items" | "damaged", { id: string }[]>>("GET", "/v1/snapshots");
  const idsOf = (records: readonly { id: string }[]): string[] => records.map((record) => record.id);
  expect([listed.status, idsOf(listed.body.items), idsOf(listed.body.damaged)]).toEqual([200, [ids[1]], [ids[0]]]);
});

test("an answer that does not fit its schema is a 500 with its cause in the log", async () => {
  const server = await startTestServer();
  vi.spyOn(server.manager, "list").mockResolvedValue({ items: [{} as never], damaged: [], more: false });
  const { status, body } = await new HttpClient(server).call<ErrorAnswer>("GET", "/v1/sandboxes?cursor=c2VjcmV0IGE");
  expect([status, body.error.code]).toEqual([500, "internal"]);
  expect(server.problems).toEqual([expect.stringMatching(/^GET \/v1\/sandboxes: /)]);
});

test("a record of a gigabyte is not read", async () => {
  const server = await startTestServer();
  const http = new HttpClient(server);
  const [first = "", huge = ""] = await storedSandboxes(http, 2);
  const versions = join(server.storeFolder ?? "", huge, ".head");
  for (const name of await readdir(versions)) await truncate(join(versions, name), 2 ** 30);
  const before = process.memoryUsage().rss;
  const { body } = await http.call<Listed>("GET", "/v1/sandboxes");
  expect([body.items.map(({ id }) => id), body.damaged.map(({ id }) => id)]).toEqual([[first], [huge]]);
  expect(process.memoryUsage().rss - before).toBeLessThan(2 ** 29);
});
