import type { SandboxRecord, SnapshotInfo } from "@sandboxer/protocol";
import { expect, test } from "vitest";
import { IndexSurveyor } from "../../../src/collection/index-survey.ts";
import { readHead } from "../../../src/lease/stored-head.ts";
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
  const snapshot = await http.call<SnapshotInfo>("POST", `/v1/sandboxes/${created[2]}/snapshots`, {});
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
    (await http.call("GET", "/v1/instances")).body,
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

test("changes are seen at once", async () => {
  const { http, other, walks, build, store } = await fleet();
  await build();
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
