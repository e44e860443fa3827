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
