import type { Head } from "@sandboxer/protocol";
import { expect, it } from "vitest";
import { snapshotEntries, viewOfPart } from "../../../src/checkpoints/snapshot-entries.ts";
import { sandboxViews } from "../../../src/lease/head-entries.ts";
import { encodeHead } from "../../../src/lease/head-codec.ts";
import { newHead } from "../../../src/lease/head.ts";
import type { Instances } from "../../../src/lease/instances.ts";
import { instanceKey } from "../../../src/lease/liveness-record.ts";
import { Ownership } from "../../../src/lease/ownership.ts";
import { listInstances } from "../../../src/manager/observing/list-instances.ts";
import { listSandboxPage, type ListPlace } from "../../../src/manager/observing/list-sandboxes.ts";
import type { ManagerContext } from "../../../src/manager/context.ts";
import { settleOrphans } from "../../../src/manager/ownership/settle-orphans.ts";
import type { ObservingContext } from "../../../src/manager/room-contexts.ts";
import { behind, placeOf } from "../../../src/store/index/index-names.ts";
import { INDEX_STATE_KEY, StoreIndex, WRITERS_FOLDER } from "../../../src/store/index/store-index.ts";
import type { NamePage, ObjectStore } from "../../../src/store/store.ts";
import { MemoryStore } from "../../collection/memory-store.ts";
import { countedStore, type RequestCounts } from "../../store/counted-store.ts";
import { FakeClock } from "../../lease/fake-clock.ts";
import { newSandbox } from "../../lease/samples.ts";

const STORED = 1_000_000;
const PAGE = 100;
/** Besides the heads that are shown. */
const MOST_REQUESTS = 20;
const FIRST_MS = Date.UTC(2020, 0, 1);
const ME = "server-1";

const idOf = (number: number): string => `${number.toString(16).padStart(8, "0")}-0000-4000-8000-000000000000`;
const createdAt = (number: number): string => new Date(FIRST_MS + number * 1000).toISOString();
/** Every second one has a label, every 50th one runs, one in 1,000 of those here. */
const isRed = (number: number): boolean => number % 2 === 0;
const isRunning = (number: number): boolean => number % 50 === 0;
const ownerOf = (number: number): string | null =>
  isRunning(number) ? (number % 50_000 === 0 ? ME : "server-2") : null;

function headOf(number: number): Head {
  const owner = ownerOf(number);
  const labels = isRed(number) ? { team: "red" } : {};
  const about = { key: `key-${number}`, name: `name-${number}` } as NonNullable<Head["about"]>;
  const sandbox = {
    ...newSandbox(),
    spec: { env: {}, resources: {}, network: "none", labels },
    about,
    createdAt: createdAt(number),
  };
  const head = newHead(owner ?? ME, sandbox, { nonce: `nonce-${number}`, now: createdAt(number) });
  return owner === null ? { ...head, owner, state: "parked" } : head;
}

/** The members of a view are every `step`-th sandbox from `first` on. */
const VIEWS: ReadonlyMap<string, { readonly first: number; readonly step: number }> = new Map([
  [sandboxViews.all, { first: 0, step: 1 }],
  [sandboxViews.label("team"), { first: 0, step: 2 }],
  [sandboxViews.label("team=red"), { first: 0, step: 2 }],
  [sandboxViews.backend("fake"), { first: 0, step: 1 }],
  [sandboxViews.running, { first: 0, step: 50 }],
  [sandboxViews.owner(ME), { first: 0, step: 50_000 }],
  [sandboxViews.key("key-4711"), { first: 4711, step: STORED }],
  [sandboxViews.name("name-4711"), { first: 4711, step: STORED }],
]);

/** A store of which every name and head is made when it is asked for. */
function millionStore(): ObjectStore {
  const inner = new MemoryStore();
  const overrides: Partial<ObjectStore> = {
    listNames: async (folder: string, { after = "", limit }: NamePage) => {
      if (folder === WRITERS_FOLDER) return [ME, "server-2"];
      const { first, step } = VIEWS.get(folder.slice("index/".length)) ?? { first: STORED, step: 1 };
      const count = Math.ceil((STORED - first) / step);
      // Newest first.
      const nameAt = (index: number): string => {
        const number = first + (count - 1 - index) * step;
        return placeOf(createdAt(number), idOf(number));
      };
      let [low, high] = [0, count];
      while (low < high) {
        const middle = (low + high) >>> 1;
        if (nameAt(middle) > after) high = middle;
        else low = middle + 1;
      }
      return Array.from({ length: Math.min(limit, count - low) }, (_, index) => nameAt(low + index));
    },
    readCell: async (key) => {
      if (key === INDEX_STATE_KEY) {
        const body = Buffer.from(JSON.stringify({ format: 1, examined: [], nonce: "", history: [] }));
        return { body, version: "1" };
      }
      return { body: encodeHead(headOf(Number.parseInt(key.slice(0, 8), 16))), version: "1" };
    },
    listCells: async function* listCells() {
      yield* [ME, "server-2"].map(instanceKey);
    },
    listFolders: () => {
      throw new Error("all folders were listed");
    },
  };
  return new Proxy<ObjectStore>(inner, {
    get: (target, name) => {
      const value: unknown = Reflect.get(overrides, name) ?? Reflect.get(target, name);
      return typeof value === "function" ? (value.bind(target) as unknown) : value;
    },
  });
}

function fleet(): { context: ObservingContext; counts: RequestCounts; total: () => number } {
  const { store, counts } = countedStore(millionStore());
  const servers = [ME, "server-2"].map((instanceId) => ({
    instanceId,
    url: undefined,
    alive: true,
    knows: ["index"],
    here: instanceId === ME,
  }));
  const look = async (): Promise<typeof servers> => {
    counts.list += 1;
    return servers;
  };
  const instances = {
    store,
    instanceId: ME,
    frozen: false,
    servers: look,
  } as unknown as Instances;
  const ownership = new Ownership(instances, { indexed: true });
  const durable = { ownership, keys: undefined };
  const options = { clock: new FakeClock(), durable, observer: { problem: () => {} } };
  const context = {
    sandboxes: new Map(),
    durable,
    options,
    draining: true,
  } as unknown as ObservingContext;
  return { context, counts, total: () => counts.get + counts.list + counts.put + counts.delete };
}

const FILTERS = [
  ["everything", {}, () => true],
  ["a label", { label: ["team=red"] }, isRed],
  ["a state", { state: "running" }, isRunning],
  ["a label and a state", { label: ["team"], state: "running" }, isRunning],
  ["a backend and a label", { backend: "fake", label: ["team=red"] }, isRed],
  ["a key", { key: "key-4711" }, (number: number) => number === 4711],
  ["a name", { name: "name-4711" }, (number: number) => number === 4711],
  ["a key that is new", { key: "new" }, () => false],
] as const;

it.each(FILTERS)("with 1,000,000 stored, a page by %s takes few requests", async (_, filter, isMember) => {
  const { context, counts, total } = fleet();
  const expected: string[] = [];
  for (let number = STORED - 1; number >= 0 && expected.length < 2 * PAGE; number--)
    if (isMember(number)) expected.push(idOf(number));
  let after: ListPlace | undefined;
  for (const ids of [expected.slice(0, PAGE), expected.slice(PAGE)]) {
    Object.assign(counts, { get: 0, list: 0, put: 0, delete: 0 });
    const page = await listSandboxPage(context, filter as Parameters<typeof listSandboxPage>[1], {
      limit: PAGE,
      after,
    });
    expect(page.items.map(({ id }) => id)).toEqual(ids);
    expect(total() - page.items.length).toBeLessThanOrEqual(MOST_REQUESTS);
    const last = page.items.at(-1);
    if (last === undefined) return;
    after = { created_at: last.created_at, id: last.id };
  }
});

it("with 1,000,000 stored, the servers take a request for each, besides the heads of their sandboxes", async () => {
  const { context, total } = fleet();
  const listed = await listInstances(context);
  const owned = listed.find(({ id }) => id === ME)?.owns ?? [];
  expect(owned).toHaveLength(STORED / 50_000);
  expect(total() - owned.length).toBeLessThanOrEqual(MOST_REQUESTS);
});

it("with 1,000,000 stored, the start of a server takes few requests", async () => {
  const { context, total } = fleet();
  const { ownership } = context.durable;
  // Its dead predecessors, the ends of lifetimes, and the sandboxes that are to be resumed.
  await settleOrphans(context as unknown as ManagerContext, new Set(["server-3", "server-4"]));
  for await (const { sandboxId } of ownership.listIn([sandboxViews.expiring])) throw new Error(sandboxId);
  const index = await ownership.completeIndex();
  expect(await Array.fromAsync(index?.ids([sandboxViews.restarting, sandboxViews.running]) ?? [])).toEqual([]);
  expect(index).toBeDefined();
  expect(total()).toBeLessThanOrEqual(MOST_REQUESTS);
});

it("finds the snapshots of one sandbox by one list", async () => {
  const { store, counts } = countedStore(new MemoryStore());
  const [mine, other] = [idOf(1), idOf(2)];
  for (let number = 0; number < 50; number++) {
    const snapshot = { id: idOf(1000 + number), created_at: createdAt(number), key: null, parent: null };
    await store.addNames(snapshotEntries({ ...snapshot, sandbox_id: number % 10 === 0 ? mine : other }));
  }
  counts.list = 0;
  const index = new StoreIndex(store, async () => []);
  expect(await Array.fromAsync(index.ids([viewOfPart({ sandboxId: mine })]))).toHaveLength(5);
  expect(counts.list).toBe(1);
});

it("positions lie between places", () => {
  const [newer, older] = [placeOf(createdAt(2), idOf(0)), placeOf(createdAt(1), idOf(0))];
  expect([older, `${newer}.ffffffff`, behind(newer), newer, `${newer}.12`].toSorted()).toEqual([
    newer,
    `${newer}.12`,
    `${newer}.ffffffff`,
    behind(newer),
    older,
  ]);
});
