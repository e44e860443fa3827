import { randomUUID } from "node:crypto";
import type { Head, SandboxRecord } from "@sandboxer/protocol";
import { beforeEach, expect, test } from "vitest";
import type { ObjectStore } from "../../../src/store/store.ts";
import { startTestServer } from "../../../../../test/kit/server/test-server.ts";
import { HttpClient } from "./support.ts";

interface List {
  readonly items: SandboxRecord[];
  readonly next_cursor: string | null;
}

/** So many heads are read ahead of those that are shown. */
const AHEAD = 16;

let http: HttpClient;
let store: ObjectStore;
let head: Head;
let reads: string[];

beforeEach(async () => {
  reads = [];
  const wrapStore = (real: ObjectStore): ObjectStore => {
    store = real;
    return new Proxy(real, {
      get: (target, name) => {
        if (name === "readCell")
          return (key: string) => {
            if (key.endsWith("/metadata.json")) reads.push(key.slice(0, -"/metadata.json".length));
            return target.readCell(key);
          };
        const value: unknown = Reflect.get(target, name, target);
        return typeof value === "function" ? (value.bind(target) as unknown) : value;
      },
    });
  };
  http = new HttpClient(await startTestServer({ wrapStore }));
  const { id } = await http.create({});
  await http.call("POST", `/v1/sandboxes/${id}/checkpoint`);
  const cell = await store.readCell(`${id}/metadata.json`);
  head = JSON.parse(Buffer.from(cell?.body ?? "").toString()) as Head;
  await http.call("DELETE", `/v1/sandboxes/${id}`);
});

async function put(number: number, changes: Partial<Head> = {}): Promise<string> {
  const id = randomUUID();
  const createdAt = new Date(Date.UTC(2020, 0, 1) + number * 1000).toISOString();
  const body = { ...head, createdAt, nonce: randomUUID(), ...changes };
  await store.swapCell(`${id}/metadata.json`, undefined, Buffer.from(JSON.stringify(body)));
  return id;
}

async function change(id: string, changes: Partial<Head>): Promise<void> {
  const cell = await store.readCell(`${id}/metadata.json`);
  const body = { ...(JSON.parse(Buffer.from(cell?.body ?? "").toString()) as Head), ...changes, nonce: randomUUID() };
  await store.swapCell(`${id}/metadata.json`, cell?.version, Buffer.from(JSON.stringify(body)));
}

async function list(query = ""): Promise<List> {
  reads = [];
  return (await http.call<List>("GET", `/v1/sandboxes?${query}`)).body;
}

/** A page of ten. The search for expired sandboxes reads all heads once, seconds after the start; then it is asked for again. */
async function pageOfTen(cursor = ""): Promise<List> {
  for (let left = 2; ; left -= 1) {
    const page = await list(`limit=10${cursor}`);
    if (reads.length <= 10 + AHEAD || left === 0) return page;
  }
}

const idsOf = ({ items }: List): string[] => items.map(({ id }) => id);

test("a page reads only the heads that it shows, and all pages together are the list", async () => {
  const ids: string[] = [];
  for (let number = 0; number < 60; number++) ids.unshift(await put(number));
  const live = await http.create({});
  expect(idsOf(await list("limit=1000"))).toEqual([live.id, ...ids]);
  const first = await pageOfTen();
  expect(idsOf(first)).toEqual([live.id, ...ids.slice(0, 9)]);
  expect(reads.length).toBeLessThanOrEqual(10 + AHEAD);
  const all: string[] = [...idsOf(first)];
  for (let page = first; page.next_cursor !== null;) {
    page = await pageOfTen(`&cursor=${page.next_cursor}`);
    expect(reads.length).toBeLessThanOrEqual(10 + AHEAD);
    all.push(...idsOf(page));
  }
  expect(all).toEqual([live.id, ...ids]);
});

test("a paused sandbox is shown as its head describes it now", async () => {
  const [older, newer] = [await put(1), await put(2)];
  expect((await list()).items.map(({ id, state }) => [id, state])).toEqual([
    [newer, "stored"],
    [older, "stored"],
  ]);
  const owner = randomUUID();
  await change(older, { owner, state: "live", epoch: 7 });
  expect((await list()).items[1]).toMatchObject({
    id: older,
    state: "running",
    epoch: 7,
    owner: { instance_id: owner },
  });
  expect(idsOf(await list("state=running"))).toEqual([older]);
  await change(older, { owner: null, state: "deleted", epoch: 8 });
  expect(idsOf(await list())).toEqual([newer]);
  expect(idsOf(await list())).toEqual([newer]);
  expect(reads).not.toContain(older);
  expect(idsOf(await list("state=destroyed"))).toContain(older);
});

test("a sandbox with a key is found without reading the others", async () => {
  for (let number = 0; number < 40; number++) await put(number);
  const wanted = await put(41, { about: { ...head.about, key: "mine" } as Head["about"] });
  await list();
  expect(idsOf(await list("key=mine"))).toEqual([wanted]);
  expect(reads).toEqual([wanted]);
});
