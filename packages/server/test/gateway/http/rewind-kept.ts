import type { SandboxRecord } from "@sandboxer/protocol";
import { expect } from "vitest";
import type { SandboxBackend } from "../../../src/backends/backend.ts";
import {
  startTestServer,
  type TestServer,
  type TestServerOptions,
} from "../../../../../test/kit/server/test-server.ts";
import { SnapshotClient } from "./snapshot-client.ts";

const FILE = "/workspace/file";

export async function write(server: TestServer, id: string, text: string): Promise<void> {
  await (await server.live(id)).handle.files.write(FILE, Buffer.from(text));
}

export async function read(server: TestServer, id: string): Promise<string> {
  const { files } = (await server.live(id)).handle;
  return Buffer.concat(await Array.fromAsync(files.read(FILE))).toString();
}

/** A sandbox of a real provider is put back twice, in place; `check` looks at what the provider has then. */
export async function rewindTwice(
  backend: SandboxBackend,
  check: (id: string) => Promise<void>,
  body: object = { backend: backend.name },
  options: TestServerOptions = {},
): Promise<void> {
  const api = new SnapshotClient(await startTestServer({ moreBackends: [backend], ...options }));
  const made = await api.http.create({ ...body, name: "kept" });
  await write(api.server, made.id, "before");
  const snapshot = await api.take(made.id, { mode: "filesystem" });
  for (const copy of [1, 2]) {
    const { id, epoch } = made;
    await write(api.server, id, "after");
    const path = `/v1/sandboxes/${id}/rewind`;
    const rewound = await api.call<SandboxRecord>("POST", path, { snapshot_id: snapshot.id });
    expect(rewound).toMatchObject({ status: 200, body: { id, epoch, name: "kept", state: "running" } });
    expect(await read(api.server, id)).toBe("before");
    expect(await api.server.durable.ownership.read(id)).toMatchObject({ copy, spare_copy: null });
  }
  await check(made.id);
  expect((await api.call("DELETE", `/v1/sandboxes/${made.id}`)).status).toBe(200);
}

/** A fork of a sandbox of a real provider gives it its files; `check` looks at what the provider has then. */
export async function promoteFork(
  backend: SandboxBackend,
  check: (id: string, winner: string) => Promise<void>,
): Promise<void> {
  const api = new SnapshotClient(await startTestServer({ moreBackends: [backend] }));
  const made = await api.http.create({ backend: backend.name, name: "kept" });
  await write(api.server, made.id, "old");
  const forked = await api.call<{ items: SandboxRecord[] }>("POST", `/v1/sandboxes/${made.id}/fork`, {});
  const winner = forked.body.items[0]?.id ?? "";
  await write(api.server, winner, "new");
  const promoted = await api.call<{ sandbox: SandboxRecord; former_snapshot_id: string }>(
    "POST",
    `/v1/sandboxes/${made.id}/promote`,
    { winner },
  );
  expect(promoted).toMatchObject({ status: 200, body: { sandbox: { id: made.id, name: "kept" }, deleted: [winner] } });
  expect(await read(api.server, made.id)).toBe("new");
  await check(made.id, winner);
  const former = promoted.body.former_snapshot_id;
  expect((await api.call("POST", `/v1/sandboxes/${made.id}/rewind`, { snapshot_id: former })).status).toBe(200);
  expect(await read(api.server, made.id)).toBe("old");
  expect((await api.call("DELETE", `/v1/sandboxes/${made.id}`)).status).toBe(200);
}
