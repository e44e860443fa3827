import type { ProvenCheckpoint, SandboxRecord } from "@sandboxer/protocol";
import { expect, test } from "vitest";
import { startCli } from "./support/run-cli.ts";

test("checkpoint --leave-running saves a sandbox that keeps running", async () => {
  const cli = await startCli();
  await cli.id(["create", "--name", "web"]);
  const { code, err } = await cli(["checkpoint", "web", "--leave-running"]);
  expect([code, err]).toEqual([
    0,
    expect.stringMatching(/web is saved \(checkpoint_\d+\.img, .*\) and keeps running\.\n$/),
  ]);
  const record = await cli.json<SandboxRecord>(["get", "web"]);
  expect(record).toMatchObject({ state: "running", checkpoint: { name: expect.stringMatching(/^checkpoint_/) } });
  expect(record.durability.last_saved_at).toBe(record.checkpoint?.created_at);
});

test("the promised maximum loss is set at creation, changed later and shown", async () => {
  const cli = await startCli();
  const web = await cli.id(["create", "--name", "web", "--max-loss", "5m"]);
  expect((await cli(["get", "web"])).out).toMatch(/^max loss +5m$/m);
  await cli.id(["update", "web", "--max-loss", "10"]);
  expect((await cli(["get", "web"])).out).toMatch(/^max loss +10 executions$/m);
  expect(await cli.json(["get", "web"])).toMatchObject({ durability: { max_loss: 10, at_risk: null } });
  expect((await cli(["ls", "--at-risk", "-q"])).out).toBe("");
  await cli.id(["update", "web", "--no-max-loss"]);
  expect(await cli.json(["get", web])).toMatchObject({ durability: { max_loss: null } });
  for (const given of ["soon", "0", "2000000"]) {
    const wrong = await cli(["update", "web", "--max-loss", given]);
    expect(wrong).toMatchObject({ code: 2, err: expect.stringContaining("Write a number of executions") });
  }
});

test("create --restart always is kept and shown", async () => {
  const cli = await startCli();
  await cli.id(["create", "--name", "web", "--restart", "always"]);
  expect((await cli(["get", "web"])).out).toMatch(/^restart +always$/m);
  expect(await cli.json(["get", "web"])).toMatchObject({ restart: "always" });
  expect(await cli(["create", "--restart", "sometimes"])).toMatchObject({ code: 2 });
});

test("create --require and --prefer are kept, shown and changed", async () => {
  const cli = await startCli();
  await cli.id(["create", "--name", "web", "--prefer", "zone=a", "--prefer", "pool=gpu"]);
  expect((await cli(["get", "web"])).out).toMatch(/^prefers servers with +zone=a pool=gpu$/m);
  await cli.id(["update", "web", "--require", "pool=gpu"]);
  expect(await cli.json(["get", "web"])).toMatchObject({ affinity: { require: { pool: "gpu" } } });
  expect((await cli(["get", "web"])).out).toMatch(/^requires servers with +pool=gpu$/m);
  await cli.id(["update", "web", "--no-affinity"]);
  expect(await cli.json(["get", "web"])).toMatchObject({ affinity: null });
  expect(await cli(["create", "--require", "pool=gpu"])).toMatchObject({ code: 10 });
  expect((await cli(["instances"])).out).not.toContain("LABELS");
});

test("prove test-restores a snapshot; its record, the list and the exit code have the result", async () => {
  const cli = await startCli();
  await cli.id(["create", "--name", "web"]);
  const id = await cli.id(["snapshot", "web", "--name", "before"]);
  const { code, out, err } = await cli(["prove", "before"]);
  expect([code, out, err]).toEqual([0, `${id}\n`, expect.stringMatching(/before can be restored \(fake \S+\)\.\n$/)]);
  expect((await cli(["snapshots", "list"])).out).toMatch(/before +ready \(proven\)/);
  expect((await cli(["snapshots", "get", "before"])).out).toMatch(/^proven +\d{4}-.*, on fake /m);
  expect(await cli.json(["prove", "before"])).toMatchObject({
    id,
    proven: { engine: expect.stringMatching(/^fake /) },
  });
  expect((await cli(["ls", "-q"])).out.trim().split("\n")).toHaveLength(1);
  expect((await cli(["prove", "after"])).code).toBe(4);
  expect((await cli(["prove", "web"])).err).toContain("No checkpoint");
  await cli(["checkpoint", "web", "--leave-running"]);
  const { checkpoint, proven } = await cli.json<ProvenCheckpoint>(["prove", "web"]);
  expect(proven.engine).toMatch(/^fake /);
  const again = await cli(["prove", `web@${checkpoint}`]);
  expect([again.code, again.out]).toEqual([0, `${checkpoint}\n`]);
});
