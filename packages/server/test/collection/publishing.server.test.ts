import { randomUUID } from "node:crypto";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { SnapshotPayload } from "../../src/backends/backend.ts";
import { checkpointKey } from "../../src/checkpoints/checkpoint-names.ts";
import { CheckpointRepository } from "../../src/checkpoints/checkpoint-repository.ts";
import { collectGarbage } from "../../src/collection/collect-garbage.ts";
import { Instances } from "../../src/lease/instances.ts";
import { Ownership } from "../../src/lease/ownership.ts";
import { headKey, readHead } from "../../src/lease/stored-head.ts";
import type { ObjectStore } from "../../src/store/store.ts";
import { FakeClock } from "../lease/fake-clock.ts";
import { newSandbox } from "../lease/samples.ts";
import { MemoryStore } from "./memory-store.ts";
import { PLANTED_BUGS } from "./planted-bugs.ts";
import { type Burst, Turns } from "./turns.ts";

const [OWNER, HEIR, COLLECTOR, OTHER_COLLECTOR] = [0, 1, 2, 3] as const;

const burstsArbitrary = fc.array(fc.record({ actor: fc.nat({ max: 3 }), steps: fc.integer({ min: 1, max: 60 }) }), {
  minLength: 4,
  maxLength: 24,
});

/** The clock of the servers went back: names grow by one, which is when one may come to be used twice. */
const EARLY_MS = 1;

async function server(store: ObjectStore, clock: FakeClock) {
  const options = { store, clock, ttlMs: 15_000, url: null, onFenced: () => {}, onError: () => {} };
  const instances = await Instances.register(options);
  return { instances, ownership: new Ownership(instances), checkpoints: new CheckpointRepository(store) };
}

type Server = Awaited<ReturnType<typeof server>>;

async function save(checkpoints: CheckpointRepository, id: string, parent: string | null) {
  const state: SnapshotPayload = { kind: "fake-state", members: [], requirements: { nonce: randomUUID() } };
  return await checkpoints.save(id, state, { wallMs: EARLY_MS, parent });
}

/** Saves and publishes as the manager does; an image that was not published stays, for collection. */
async function put({ ownership, checkpoints }: Server, id: string, parent: string | null): Promise<string | undefined> {
  const epoch = ownership.held(id)?.epoch ?? 0;
  const checkpoint = await save(checkpoints, id, parent);
  try {
    await ownership.publishAndRelease({ id, epoch }, checkpoint);
  } catch {
    return undefined;
  }
  await checkpoints.writeLatest(id, checkpoint.name);
  await checkpoints.prune(id, checkpoint.name, { keep_last: 2 });
  return checkpoint.name;
}

type Start = "owned" | "owned by one taken for dead" | "parked" | "parked, with an image that was never published";

/**
 * An owner that saves, if it has the sandbox, and may be taken for dead while it does; another server that takes the sandbox up, if it can; two
 * collectors. After each step the image that the head names is there.
 */
async function play(bursts: readonly Burst[], start: Start, plant: (store: ObjectStore) => ObjectStore): Promise<void> {
  const [store, turns, clock, id] = [new MemoryStore(), new Turns(), new FakeClock(), randomUUID()];
  const [owner, heir] = [
    await server(turns.storeOf(OWNER, store), clock),
    await server(turns.storeOf(HEIR, store), clock),
  ];
  await owner.ownership.create(id, newSandbox());
  await put(owner, id, null);
  const ownerIsDead = start === "owned by one taken for dead";
  const first = start.startsWith("parked") ? undefined : await owner.ownership.claim(id);
  if (start === "parked, with an image that was never published") await save(owner.checkpoints, id, null);
  if (ownerIsDead) await heir.instances.markDead(owner.instances.instanceId);

  const acknowledged: string[] = [];
  const heirTakes = async (): Promise<void> => {
    const head = await heir.ownership.claim(id).catch(() => undefined);
    if (head === undefined) return;
    const name = head.checkpoint?.name ?? "";
    expect((await heir.checkpoints.open(id, name)).manifestSha256).toBe(head.checkpoint?.sha256);
    acknowledged.push(...toList(await put(heir, id, name)));
  };
  const ownerSaves = async (): Promise<void> => {
    if (first === undefined) return;
    const saving = put(owner, id, first.checkpoint?.name ?? null);
    // A server that the others consider dead may lose the image that it could not have published.
    acknowledged.push(...toList(await (ownerIsDead ? saving.catch(() => undefined) : saving)));
  };
  const collects = (actor: number) => async (): Promise<void> => {
    await collectGarbage({
      store: plant(turns.storeOf(actor, store)),
      clock,
      apply: true,
      keep: { checkpoints: { keep_last: 1 } },
    });
  };
  const actors = [ownerSaves, heirTakes, collects(COLLECTOR), collects(OTHER_COLLECTOR)];
  await turns.run(actors, bursts, async () => {
    const cell = await store.readCell(headKey(id));
    const { name } = (JSON.parse(Buffer.from(cell?.body ?? []).toString()) as { checkpoint: { name: string } })
      .checkpoint;
    if (!store.has(checkpointKey(id, name))) throw new Error(`The head names ${name}, which is gone.`);
  });
  await Promise.all([owner.instances.close(), heir.instances.close()]);
  const head = await readHead(store, id);
  if (acknowledged.length > 0) expect(acknowledged).toContain(head?.checkpoint?.name);
  const opened = await new CheckpointRepository(store).open(id, head?.checkpoint?.name ?? "");
  expect(opened.manifestSha256).toBe(head?.checkpoint?.sha256);
}

const STARTS: readonly Start[] = [
  "owned",
  "owned by one taken for dead",
  "parked",
  "parked, with an image that was never published",
];

/** Where each planted bug shows. */
const SHOWS_WHEN: Readonly<Record<keyof typeof PLANTED_BUGS, Start>> = {
  "does not look at the head again": "parked",
  "leaves no mark": "parked, with an image that was never published",
  "does not move the head of a dead owner": "owned by one taken for dead",
  "takes every server for dead, and moves no head": "owned",
};

function toList(name: string | undefined): string[] {
  return name === undefined ? [] : [name];
}

function property(plant: (store: ObjectStore) => ObjectStore, starts: readonly Start[]) {
  return fc.asyncProperty(
    burstsArbitrary,
    fc.constantFrom(...starts),
    async (bursts, start) => await play(bursts, start, plant),
  );
}

describe("while others publish", () => {
  it("nothing that is referenced is ever removed", async () => {
    await fc.assert(
      property((store) => store, STARTS),
      { numRuns: 250 },
    );
  });

  const bugs = Object.keys(PLANTED_BUGS) as (keyof typeof PLANTED_BUGS)[];
  it.each(bugs)("a collector that %s is caught", async (bug) => {
    const planted = property(PLANTED_BUGS[bug], [SHOWS_WHEN[bug]]);
    const { failed, errorInstance } = await fc.check(planted, { numRuns: 3_000, endOnFailure: true, seed: 9 });
    expect(failed).toBe(true);
    expect(String(errorInstance)).toMatch(/which is gone|is not in the store/);
  });
});
