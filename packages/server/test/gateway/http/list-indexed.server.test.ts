import { randomUUID } from "node:crypto";
import type { SandboxRecord, SnapshotInfo } from "@sandboxer/protocol";
import { expect, test } from "vitest";
import { IndexSurveyor } from "../../../src/collection/index-survey.ts";
import { sandboxViews } from "../../../src/lease/head-entries.ts";
import { headKey, readHead } from "../../../src/lease/stored-head.ts";
import { entryKey, placeOf } from "../../../src/store/index/index-names.ts";
import { openStore } from "../../../src/store/open-store.ts";
import type { ObjectStore } from "../../../src/store/store.ts";
import { systemClock } from "../../../src/support/clock.ts";
import { startTestServer } from "../../../../../test/kit/server/test-server.ts";
import { HttpClient } from "./support.ts";

interface List<Item> {
  readonly items: Item[];
  readonly next_cursor?: string | null;
}

/** Two servers of one store with an index, and how often all folders were listed. */
async function fleet() {
  const walks = { count: 0 };
  const wrapStore = (real: ObjectStore): ObjectStore =>
    new Proxy(real, {
      get: (target, name) => {
        const value: unknown = Reflect.get(target, name, target);
        if (typeof value !== "function") return value;
        return (...parameters: unknown[]): unknown => {
          if (name === "listFolders" && ["", "snapshots"].includes(String(parameters[0]))) walks.count += 1;
          return Reflect.apply(value, target, parameters);
        };
      },
    });
  const first = await startTestServer({ indexed: true, wrapStore });
  const folder = first.storeFolder ?? "";
  const second = await startTestServer({ indexed: true, wrapStore, store: folder });
  const store = await openStore(folder);
  const surveyor = new IndexSurveyor();
  const build = async (): Promise<void> => await surveyor.attend({ store, clock: systemClock, apply: true, keep: {} });
  return { http: new HttpClient(first), other: new HttpClient(second), walks, build, store };
}

async function ids(http: HttpClient, query: string): Promise<string[]> {
  const { body } = await http.call<List<SandboxRecord>>("GET", `/v1/sandboxes?${query}`);
  return body.items.map(({ id }) => id);
}

interface Server {
  readonly owns: readonly string[];
}

/** The sandboxes of a server come in no particular order. */
function inOrder({ owns, ...rest }: Server): object {
  return { ...rest, owns: owns.toSorted() };
}

test("lists, filters, servers and snapshots are the same from the index, without a list of all folders", async () => {
  const { http, other, walks, build } = await fleet();
  const created: string[] = [];
  for (let number = 0; number < 6; number++) {
    const labels = { parity: number % 2 === 0 ? "even" : "odd" };
    const sandbox = await (number < 4 ? http : other).create({ name: `n${number}`, labels });
    created.unshift(sandbox.id);
    if (number < 2) await http.call("POST", `/v1/sandboxes/${sandbox.id}/checkpoint`);
  }
  await http.call("DELETE", `/v1/sandboxes/${created[1]}`);
  const snapshot = await http.call<SnapshotInfo>("POST", `/v1/sandboxes/${created[2]}/snapshot`, {});
  const queries = [
    "",
    "label=parity%3Deven",
    "label=parity",
    "state=running",
    "state=stored",
    "state=destroyed",
  ].concat(["name=n3", "label=parity%3Dodd&state=running", "backend=fake", "key=none", "limit=2"]);
  const look = async (): Promise<unknown[]> => [
    ...(await Promise.all(queries.flatMap((query) => [ids(http, query), ids(other, query)]))),
    (await http.call<List<Server>>("GET", "/v1/instances")).body.items.map(inOrder),
    (await http.call<List<SnapshotInfo>>("GET", `/v1/snapshots?sandbox_id=${created[2]}`)).body,
  ];
  const before = await look();
  expect(walks.count).toBeGreaterThan(0);
  await build();
  walks.count = 0;
  expect(await look()).toEqual(before);
  expect(walks.count).toBe(0);
  expect(JSON.stringify(before)).toContain(snapshot.body.id);
});

test("entries that no head confirms show nothing, and a head that cannot be read is shown as damaged", async () => {
  const { http, other, build, store } = await fleet();
  await build();
  const kept = await http.create({ name: "kept", labels: { stage: "done" } });
  const deleted = await http.create({});
  await http.call("POST", `/v1/sandboxes/${deleted.id}/checkpoint`);
  await http.call("DELETE", `/v1/sandboxes/${deleted.id}`);
  const missing = placeOf(kept.created_at, randomUUID());
  const [ofKept, ofDeleted] = [kept, deleted].map(({ created_at, id }) => placeOf(created_at, id));
  const { all, running, paused, label, name, key } = sandboxViews;
  await store.addNames([
    ...[all, running, paused, label("stage=done"), name("kept"), key("k")].map((view) => entryKey(view, missing, "1")),
    ...[all, running, paused, label("stage=done")].map((view) => entryKey(view, ofDeleted ?? "", "1")),
    ...[paused, label("stage=draft"), name("other"), key("k")].map((view) => entryKey(view, ofKept ?? "", "old")),
  ]);
  for (const query of ["", "label=stage%3Ddone", "state=running", "name=kept"])
    expect(await ids(other, query)).toEqual([kept.id]);
  for (const query of ["label=stage%3Ddraft", "state=stored", "name=other", "key=k"])
    expect(await ids(other, query)).toEqual([]);
  const surveyor = new IndexSurveyor();
  const context = { store, clock: systemClock, apply: true, keep: {} };
  expect(await surveyor.compare(context)).toMatchObject({ missing: 0, outdated: 4, unconfirmed: 10 });
  await http.call("POST", `/v1/sandboxes/${kept.id}/checkpoint`);
  await store.swapCell(headKey(kept.id), (await store.readCell(headKey(kept.id)))?.version, Buffer.from("{"));
  for (let time = 0; time < 2; time++) {
    const { body } = await other.call<List<SandboxRecord> & { damaged: { id: string }[] }>("GET", "/v1/sandboxes");
    expect(body).toMatchObject({ items: [], damaged: [{ id: kept.id }] });
    // From now on it is found by its id as well.
    await surveyor.compare(context);
  }
});

test("pages with damaged sandboxes leave none of the others out", async () => {
  const { http, other, build, store } = await fleet();
  await build();
  const created: string[] = [];
  for (let number = 0; number < 5; number++) {
    const { id } = await http.create({});
    created.unshift(id);
    await http.call("POST", `/v1/sandboxes/${id}/checkpoint`);
  }
  for (const id of [created[0], created[1], created[3]]) {
    const key = headKey(id ?? "");
    await store.swapCell(key, (await store.readCell(key))?.version, Buffer.from("{"));
  }
  const listed: string[] = [];
  for (let cursor = ""; ;) {
    const { body } = await other.call<List<SandboxRecord>>("GET", `/v1/sandboxes?limit=1${cursor}`);
    listed.push(...body.items.map(({ id }) => id));
    if (body.next_cursor == null) break;
    cursor = `&cursor=${body.next_cursor}`;
  }
  expect(listed).toEqual([created[2], created[4]]);
});

test("changes are seen at once", async () => {
  const { http, other, walks, build, store } = await fleet();
  await build();
  walks.count = 0;
  const { id } = await http.create({ labels: { stage: "draft" } });
  expect(await ids(other, "label=stage%3Ddraft")).toEqual([id]);
  await http.call("PATCH", `/v1/sandboxes/${id}`, { labels: { stage: "done" } });
  expect(await ids(other, "label=stage%3Ddraft")).toEqual([]);
  expect(await ids(other, "label=stage%3Ddone")).toEqual([id]);
  expect(await ids(other, "state=stored")).toEqual([]);
  await http.call("POST", `/v1/sandboxes/${id}/checkpoint`);
  expect(await ids(other, "state=stored")).toEqual([id]);
  expect(await ids(other, "state=running")).toEqual([]);
  await other.call("DELETE", `/v1/sandboxes/${id}`);
  expect((await readHead(store, id))?.state ?? "deleted").toBe("deleted");
  expect(await ids(http, "")).toEqual([]);
  expect(walks.count).toBe(0);
});
