import type { SandboxRecord } from "@sandboxer/protocol";
import { expect } from "vitest";
import type { SandboxBackend } from "../../src/backends/backend.ts";
import { startTestServer, type TestServer } from "../websocket/support/test-server.ts";
import { SnapshotClient } from "./snapshot-client.ts";

const FILE = "/workspace/file";

export async function write(server: TestServer, id: string, text: string): Promise<void> {
  await (await server.live(id)).handle.files.write(FILE, Buffer.from(text));
}

export async function read(server: TestServer, id: string): Promise<string> {
  const { files } = (await server.live(id)).handle;
  return Buffer.concat(await Array.fromAsync(files.read(FILE))).toString();
}

/** A sandbox of a real provider is put back twice, in place; gives its id. */
export async function rewindTwice(backend: SandboxBackend): Promise<string> {
  const api = new SnapshotClient(await startTestServer({ moreBackends: [backend] }));
  const made = await api.http.create({ backend: backend.name, name: "kept" });
  await write(api.server, made.id, "before");
  const snapshot = await api.take(made.id, { mode: "filesystem" });
  for (const copy of [1, 2]) {
    const { id, epoch } = made;
    await write(api.server, id, "after");
    const path = `/v1/sandboxes/${id}/rewind`;
    const { status, body } = await api.call<SandboxRecord>("POST", path, { snapshot_id: snapshot.id });
    expect([status, body]).toMatchObject([200, { id, epoch, name: "kept", state: "running" }]);
    expect(await read(api.server, id)).toBe("before");
    expect(await api.server.durable.ownership.read(id)).toMatchObject({ copy, spare_copy: null });
  }
  return made.id;
}
