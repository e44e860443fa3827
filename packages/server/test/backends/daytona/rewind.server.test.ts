import { expect, onTestFinished, test } from "vitest";
import { read, rewindTwice, write } from "../../gateway/http/rewind-kept.ts";
import { SnapshotClient } from "../../gateway/http/snapshot-client.ts";
import { startTestServer } from "../../../../../test/kit/server/test-server.ts";
import { openBackend, openServer } from "./lab.ts";

test("a sandbox at Daytona is rewound in place, and one sandbox is left there", async () => {
  const service = await openServer();
  const backend = openBackend(service);
  onTestFinished(() => backend.close().then(() => service.close()));
  await rewindTwice(backend, async () => {
    expect(service.plane.sandboxes.filter(({ record }) => record.state !== "destroyed")).toHaveLength(1);
  });
});

test("if Daytona does not create the copy, the error is reported and nothing has changed", async () => {
  const service = await openServer();
  const backend = openBackend(service);
  onTestFinished(() => backend.close().then(() => service.close()));
  const api = new SnapshotClient(await startTestServer({ moreBackends: [backend] }));
  const { id } = await api.http.create({ backend: "daytona" });
  await write(api.server, id, "before");
  const snapshot = await api.take(id, { mode: "filesystem" });
  await write(api.server, id, "after");
  service.plane.snapshots.clear();
  const { status, body } = await api.call("POST", `/v1/sandboxes/${id}/rewind`, { snapshot_id: snapshot.id });
  expect([status >= 400, body.error.message]).toEqual([true, expect.stringMatching(/snapshot/i)]);
  expect(await read(api.server, id)).toBe("after");
  expect(service.plane.sandboxes.filter(({ record }) => record.state !== "destroyed")).toHaveLength(1);
});
