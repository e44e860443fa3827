import { mkdtemp, rm } from "node:fs/promises";
import { join } from "node:path";
import { byEffort, type Lab } from "../lab.ts";
import { copyHeads } from "../load/copy-heads.ts";
import type { Findings } from "../result.ts";
import { timed } from "../rounds.ts";
import { callServer, createSandbox, destroySandbox } from "../server/http-call.ts";
import { startServer, type ServerProcess } from "../server/server-process.ts";
import { asFarAsItGoes } from "./as-far-as.ts";
import { Points } from "./points.ts";

const FIRST_EVER = "first page of the list, on a machine that is new to the store";
const FIRST_LIST = "first page of the list, right after a restart";

/** Response times of a server whose store has many paused sandboxes. */
export async function measureStored(lab: Lab): Promise<Partial<Findings>> {
  const counts = byEffort(lab, {
    full: [10, 100, 1000, 10_000, 100_000],
    quick: [10, 100, 1000],
    smoke: [10, 100],
  });
  const store = await mkdtemp(join(lab.scratch, "store-"));
  const times = new Points();
  const memory = new Points();
  const newPlace = (): Promise<string> => mkdtemp(join(lab.scratch, "data-"));
  const start = (dataHome: string): Promise<ServerProcess> =>
    startServer({ store, dataHome, flags: ["--backend=fake", "--rate-limit=0"] }, lab.cleanUp);
  const ids = [await storeOne(await start(await newPlace()))];
  const what = (count: number): string => `${count} stored sandboxes`;
  await asFarAsItGoes(lab, counts, what, async (count) => {
    ids.push(...(await copyHeads(store, ids[0] ?? "", count - ids.length)));
    const place = await newPlace();
    // The first server of a point has seen none of them.
    const rounds = 1 + byEffort(lab, { full: 3, quick: 2, smoke: 1 });
    for (let round = 0; round < rounds; round++) {
      const startMs = performance.now();
      const server = await start(place);
      times.add("start of a server", count, performance.now() - startMs);
      await measureAt(server, ids, count, times, round === 0 ? FIRST_EVER : FIRST_LIST);
      memory.add("the server (RSS)", count, await server.residentMiB());
      await server.stop();
    }
  });
  await rm(store, { recursive: true }).catch(() => {});
  const x = "stored sandboxes";
  const how =
    "The store is a directory; the backend is the fake one, which takes no time, so only the server and the store are measured. A page of the list reads the names of all sandboxes and the heads that it shows; heads that a server has not seen before are read once in the background after its start, and the first list waits for that. With a thousand or more, the server keeps them in its data folder for the next start.";
  return {
    curves: [
      { id: "stored-times", title: "A store with many sandboxes", x, y: "ms", series: times.series(), notes: [how] },
      {
        id: "stored-memory",
        title: "Memory of a server whose store has many sandboxes",
        x,
        y: "MiB",
        series: memory.series(),
        notes: [],
      },
    ],
  };
}

/** Creates a sandbox, saves it, and ends the server. */
async function storeOne(server: ServerProcess): Promise<string> {
  const id = await createSandbox(server);
  await callServer(server, "POST", `/v1/sandboxes/${id}/checkpoint`, {});
  await server.stop();
  return id;
}

async function measureAt(
  server: ServerProcess,
  ids: readonly string[],
  count: number,
  times: Points,
  first: string,
): Promise<void> {
  const list = (): Promise<unknown> => callServer(server, "GET", "/v1/sandboxes?limit=100");
  times.add(first, count, await timed(list));
  for (let round = 0; round < 3; round++) {
    times.add("first page of the list, again", count, await timed(list));
    const id = ids[Math.floor(((round + 0.5) / 3) * ids.length)] ?? "";
    times.add("look-up by id", count, await timed(() => callServer(server, "GET", `/v1/sandboxes/${id}`)));
    let created = "";
    times.add("create", count, await timed(async () => (created = await createSandbox(server))));
    await destroySandbox(server, created);
  }
}
