import { byEffort, type Lab } from "../lab.ts";
import type { Contest, Findings } from "../result.ts";
import { callServer, createSandbox, destroySandbox, execIn } from "../server/http-call.ts";
import { summarize } from "../statistics.ts";
import { diskMegabytes } from "../stores/disk-usage.ts";
import { leaveHeap } from "./heap.ts";

const COUNT = 10;

/** The store size of ten forks of one sandbox, compared with one image. */
export async function measureForks(lab: Lab): Promise<Partial<Findings>> {
  const megabytes = byEffort(lab, { full: 100, quick: 50, smoke: 10 });
  lab.progress(`${COUNT} forks of a sandbox with ${megabytes} MB of heap`);
  const values = { image: [] as number[], forked: [] as number[], saved: [] as number[] };
  for (let round = 0; round < byEffort(lab, { full: 3, quick: 1, smoke: 1 }); round++) {
    values.image.push(await oneImage(lab, megabytes));
    const { forked, saved } = await tenForks(lab, megabytes);
    values.forked.push(forked);
    values.saved.push(saved);
  }
  const image = { name: "one image", what: "what one snapshot added to the store", summary: summarize(values.image) };
  const contest = (id: string, title: string, what: string, list: readonly number[]): Contest => ({
    id,
    title: `${title}, ${megabytes} MB heap`,
    unit: "MB",
    sides: [{ name: "ten forks", what, summary: summarize(list) }, image],
    aim: { bound: "at most", ratio: 1.2 },
  });
  return {
    contests: [
      contest("forks", "Store of ten forks", "POST …/fork with count 10: what the store grew by", values.forked),
      contest(
        "forks-saved",
        "Store of ten forks, each checkpointed once",
        "the same, and POST …/checkpoint of each",
        values.saved,
      ),
    ],
  };
}

async function oneImage({ server }: Lab, megabytes: number): Promise<number> {
  const sandbox = await sandboxWithHeap(server, megabytes);
  const before = await diskMegabytes(server.store);
  const { id } = await callServer(server, "POST", `/v1/sandboxes/${sandbox}/snapshot`, { mode: "full" });
  const after = await diskMegabytes(server.store);
  await destroySandbox(server, sandbox);
  await callServer(server, "DELETE", `/v1/snapshots/${String(id)}`);
  return after - before;
}

async function tenForks({ server }: Lab, megabytes: number): Promise<{ forked: number; saved: number }> {
  const sandbox = await sandboxWithHeap(server, megabytes);
  const before = await diskMegabytes(server.store);
  const answer = await callServer(server, "POST", `/v1/sandboxes/${sandbox}/fork`, { count: COUNT });
  const forked = await diskMegabytes(server.store);
  const forks = (answer["items"] as readonly { id: string }[]).map(({ id }) => id);
  for (const fork of forks) await callServer(server, "POST", `/v1/sandboxes/${fork}/checkpoint`, {});
  const saved = await diskMegabytes(server.store);
  for (const each of [...forks, sandbox]) await destroySandbox(server, each);
  await callServer(server, "DELETE", `/v1/snapshots/${String(answer["snapshot_id"])}`);
  return { forked: forked - before, saved: saved - before };
}

async function sandboxWithHeap(server: Lab["server"], megabytes: number): Promise<string> {
  const sandbox = await createSandbox(server);
  await execIn(server, sandbox, ["python3", "-c", leaveHeap(megabytes)]);
  return sandbox;
}
