import type { SandboxRecord, SnapshotInfo } from "@sandboxer/protocol";
import { expect, test } from "vitest";
import { startCli } from "./support/run-cli.ts";

test("the retention is set at creation, changed part by part and shown", async () => {
  const cli = await startCli();
  await cli.id(["create", "--name", "web", "--keep-checkpoints", "last=3,hourly=24"]);
  expect((await cli(["get", "web"])).out).toMatch(/^checkpoint retention +last=3,hourly=24$/m);
  await cli.id(["update", "web", "--keep-snapshots", "5"]);
  const { retention } = await cli.json<SandboxRecord>(["get", "web"]);
  expect(retention).toEqual({ checkpoints: { keep_last: 3, hourly: 24 }, snapshots: { keep_last: 5 } });
  await cli.id(["update", "web", "--no-keep-checkpoints"]);
  expect(await cli.json(["get", "web"])).toMatchObject({ retention: { snapshots: { keep_last: 5 } } });
  await cli.id(["update", "web", "--no-keep-snapshots"]);
  expect(await cli.json(["get", "web"])).toMatchObject({ retention: null });
  for (const given of ["0", "some", "weekly=1"]) {
    const wrong = await cli(["update", "web", "--keep-checkpoints", given]);
    expect(wrong).toMatchObject({ code: 2, err: expect.stringContaining("last=N,hourly=N,daily=N") });
  }
});

test("a pinned snapshot is shown as pinned, and stays until it is unpinned", async () => {
  const cli = await startCli();
  await cli.id(["create", "--name", "web"]);
  const id = await cli.id(["snapshot", "web", "--name", "before"]);
  expect(await cli.id(["snapshots", "pin", "before"])).toBe(id);
  expect((await cli(["snapshots", "list"])).out).toContain("(pinned)");
  const refused = await cli(["snapshots", "rm", "before"]);
  expect(refused).toMatchObject({ code: 5, err: expect.stringContaining("snapshots unpin") });
  const { items } = await cli.json<{ items: SnapshotInfo[] }>(["snapshots", "unpin", "before"]);
  expect(items).toMatchObject([{ id, pinned: false }]);
  expect((await cli(["snapshots", "rm", "before"])).code).toBe(0);
});

test("a dry run lists what other rules would remove, and changes nothing", async () => {
  const cli = await startCli();
  await cli.id(["create", "--name", "web"]);
  for (let time = 0; time < 2; time += 1) await cli(["checkpoint", "web", "--leave-running"]);
  await cli.id(["snapshot", "web", "--name", "before"]);
  const { out } = await cli(["update", "web", "--keep-checkpoints", "1", "--dry-run"]);
  expect(out).toMatch(/^checkpoint +checkpoint_\d+\.img/m);
  expect(out).toMatch(/1 checkpoints and 1 snapshots are kept \(snapshots: 1 named\)\. .+ would be freed/);
  expect(await cli.json(["get", "web"])).toMatchObject({ retention: null });
  expect((await cli(["update", "web", "--dry-run"])).out).toContain("Nothing would be removed.");
});
