import { mkdtemp, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { onTestFinished } from "vitest";

/** The folders of servers on one machine, and the flags for servers on the fake backend. */
export interface Machine {
  readonly flags: readonly string[];
  readonly store: string;
  /** Replaces the store with something else, or restores it. */
  readonly takeStoreAway: () => Promise<void>;
  readonly giveStoreBack: () => Promise<void>;
  /** Whether the store has the complete state of a sandbox, and nobody owns it. */
  readonly isSaved: (id: string) => Promise<boolean>;
  /** The sandboxes whose state is on the machine because the store has not accepted it. */
  readonly keptIds: () => Promise<string[]>;
}

export async function newMachine(): Promise<Machine> {
  const folder = await mkdtemp(join(tmpdir(), "sandboxer-stop-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true, maxRetries: 5 }));
  const store = join(folder, "store");
  const away = `${store}.away`;
  return {
    store,
    flags: `--backend fake --json --port 0 --lease-ttl 2s --store ${store} --data-directory ${folder}/data`.split(" "),
    takeStoreAway: async () => {
      await rename(store, away);
      await writeFile(store, "in the way");
    },
    giveStoreBack: async () => {
      await rm(store);
      await rename(away, store);
    },
    isSaved: async (id) => {
      const head = JSON.parse(await readFile(join(store, id, "metadata.json"), "utf8")) as Record<string, unknown>;
      return head["owner"] === null && head["checkpoint"] !== null;
    },
    keptIds: async () => {
      const names = await readdir(join(folder, "data", "unpublished"), { recursive: true }).catch(() => []);
      return names.filter((name) => basename(name) === "checkpoint.json").map((name) => basename(dirname(name)));
    },
  };
}

async function call(url: string, method: string, path: string, body?: object): Promise<Record<string, unknown>> {
  const answer = await fetch(url + path, {
    method,
    ...(body === undefined ? {} : { headers: { "content-type": "application/json" }, body: JSON.stringify(body) }),
  });
  const text = await answer.text();
  if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`);
  return text === "" ? {} : (JSON.parse(text) as Record<string, unknown>);
}

/** Sandboxes that can be saved, each with its number in a file. */
export async function createSandboxes(url: string, count: number): Promise<string[]> {
  const create = async (_: unknown, number: number): Promise<string> => {
    const { id } = await call(url, "POST", "/v1/sandboxes", { enable_checkpoint: true });
    const command = ["bash", "-c", `echo ${number} > file`];
    await call(url, "POST", `/v1/sandboxes/${String(id)}/exec`, { command });
    return String(id);
  };
  return await Promise.all(Array.from({ length: count }, create));
}

/** The numbers in the sandboxes, which are resumed first. */
export async function numbersIn(url: string, ids: readonly string[]): Promise<number[]> {
  const read = async (id: string): Promise<number> => {
    await call(url, "POST", `/v1/sandboxes/${id}/resume`);
    const { stdout } = await call(url, "POST", `/v1/sandboxes/${id}/exec`, { command: ["cat", "file"] });
    return Number(stdout);
  };
  return await Promise.all(ids.map(read));
}
