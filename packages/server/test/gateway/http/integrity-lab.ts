import { randomBytes } from "node:crypto";
import { readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { EventRecord, IntegrityReport } from "@sandboxer/protocol";
import { expect } from "vitest";
import {
  startTestServer,
  type TestServer,
  type TestServerOptions,
} from "../../../../../test/kit/server/test-server.ts";
import { SnapshotClient } from "./snapshot-client.ts";

export type Api = SnapshotClient<TestServer>;

export async function start(options: TestServerOptions = {}): Promise<Api> {
  return new SnapshotClient(await startTestServer(options));
}

/** A sandbox whose state is too large to be in the image itself: three blocks. */
export async function withFile(api: Api): Promise<string> {
  const { id } = await api.http.create();
  const url = `${api.server.httpUrl}/v1/sandboxes/${id}/files?path=/workspace/data`;
  const headers = { "content-type": "application/octet-stream" };
  const { status } = await fetch(url, { method: "PUT", headers, body: randomBytes(600_000) });
  expect(status).toBeLessThan(300);
  return id;
}

export async function checkpoint(api: Api, id: string): Promise<string> {
  const { status } = await api.call("POST", `/v1/sandboxes/${id}/checkpoint`, { leave_running: true });
  expect(status).toBe(200);
  return (await api.http.get(id)).checkpoint?.name ?? "";
}

export const putDown = async (api: Api, id: string) => await api.call("POST", `/v1/sandboxes/${id}/checkpoint`, {});

export const scrub = async (api: Api, body: object = { rate_mb: null }): Promise<IntegrityReport> =>
  (await api.call<IntegrityReport>("POST", "/v1/scrub", body)).body;

export async function told(api: Api): Promise<EventRecord[]> {
  return (await api.call<{ items: EventRecord[] }>("GET", "/v1/events?type=store.damaged&limit=1000")).body.items;
}

export async function packs({ server }: Api): Promise<string[]> {
  const folder = join(server.storeFolder ?? "", "packs");
  const names = (await readdir(folder, { recursive: true })).filter((name) => name.endsWith(".pack"));
  return names.map((name) => join(folder, name));
}

export async function flipMiddle(path: string): Promise<void> {
  const bytes = await readFile(path);
  const middle = bytes.byteLength >> 1;
  bytes[middle] = (bytes[middle] ?? 0) ^ 1;
  await writeFile(path, bytes);
}

/** Every image of the store, each looked at by itself. */
export async function imagesByTruth({ server }: Api): Promise<{ damaged: string[]; whole: string[] }> {
  const [damaged, whole]: [string[], string[]] = [[], []];
  const images = server.durable.integrity?.images;
  const root = server.storeFolder ?? "";
  for (const name of await readdir(root, { recursive: true })) {
    if (!name.endsWith(".img")) continue;
    const list = await images
      ?.open(name)
      .then((open) => images.verify(open))
      .then(
        () => whole,
        () => damaged,
      );
    list?.push(name);
  }
  return { damaged: damaged.toSorted(), whole };
}
