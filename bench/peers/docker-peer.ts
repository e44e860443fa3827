import type { Readable } from "node:stream";
import { timed } from "../rounds.ts";
import { DockerApi } from "./docker-api.ts";
import type { BenchDocker } from "./start-docker.ts";
import { FILE_SAID, HOLD_AND_TICK, SAY_FILE, SAY_HELLO, WRITE_FILE, type Peer } from "./peer.ts";

const IDLE = ["sleep", "infinity"];

/** Containers of a Docker engine with one of its runtimes; `explain` finds more words for why memory cannot be saved. */
export async function openDocker(
  name: string,
  { address, image }: BenchDocker,
  runtime: string,
  explain: (error: unknown) => Promise<Error>,
): Promise<Peer> {
  const api = new DockerApi(address, runtime);
  const box = await api.create(image, IDLE);
  await api.start(box);
  return {
    name,
    work: {
      run: {
        what: { run: "create, attach and start of bash, to its first byte" },
        once: async () => {
          const elapsedMs = await run(api, image, SAY_HELLO);
          return { run: elapsedMs, "run-ahead": elapsedMs };
        },
      },
      exec: {
        what: { exec: "an exec made, started and read to its end, and its exit code" },
        once: async () => ({ exec: await timed(() => api.exec(box, ["/bin/true"])) }),
      },
      files: {
        what: {
          commit: "commit: a layer in the engine's folder, on this machine only; the container is paused meanwhile",
          "from-commit": "create, attach and start of `stat` from that image, to its first byte",
        },
        once: () => files(api, image),
      },
      memory: {
        what: {
          save: "a checkpoint of the engine (experimental), without files, in its folder; the container keeps running",
          restore: "start from the checkpoint to the next line of the program",
        },
        once: () =>
          memory(api, image).catch(async (error: unknown) => {
            throw await explain(error);
          }),
      },
    },
  };
}

async function run(api: DockerApi, image: string, command: readonly string[], wanted = "hello"): Promise<number> {
  const startMs = performance.now();
  const id = await api.create(image, command);
  try {
    const output = await api.attach(id);
    await api.start(id);
    const said = await firstWords(output);
    const elapsedMs = performance.now() - startMs;
    if (said.trim() !== wanted) throw new Error(`It said ${JSON.stringify(said)}.`);
    return elapsedMs;
  } finally {
    await api.removeContainer(id);
  }
}

async function files(api: DockerApi, image: string): Promise<{ commit: number; "from-commit": number }> {
  const id = await api.create(image, IDLE);
  await api.start(id);
  await api.exec(id, WRITE_FILE);
  const committed = "bench-committed";
  try {
    const commit = await timed(() => api.commit(id, committed));
    return { commit, "from-commit": await run(api, `${committed}:bench`, SAY_FILE, FILE_SAID) };
  } finally {
    await api.removeContainer(id);
    await api.removeImage(`${committed}:bench`).catch(() => {});
  }
}

async function memory(api: DockerApi, image: string): Promise<{ save: number; restore: number }> {
  const id = await api.create(image, HOLD_AND_TICK);
  try {
    const output = await api.attach(id);
    await api.start(id);
    await firstWords(output);
    const save = await timed(() => api.checkpoint(id, "bench"));
    output.destroy();
    await api.kill(id);
    const again = await api.attach(id);
    const restore = await timed(async () => {
      await api.start(id, "bench");
      await firstWords(again);
    });
    return { save, restore };
  } finally {
    await api.removeContainer(id);
  }
}

async function firstWords(output: Readable): Promise<string> {
  for await (const chunk of output.iterator({ destroyOnReturn: false })) return (chunk as Buffer).toString();
  throw new Error("it ended without output");
}
