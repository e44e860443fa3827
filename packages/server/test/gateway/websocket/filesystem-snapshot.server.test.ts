import { describe, expect, test } from "vitest";
import { startTestServer } from "../../../../../test/kit/server/test-server.ts";

describe("filesystem snapshot", () => {
  test("is created, and new sandboxes start from it", async () => {
    const server = await startTestServer();
    const { client } = await server.create();
    await client.run("bash", "echo shared > file").until("EXECUTION_DONE");
    expect(
      await client.send({ action: "snapshot_filesystem", name: "base" }).until("FILESYSTEM_SNAPSHOT_CREATED"),
    ).toEqual(["FILESYSTEM_SNAPSHOT_CREATING", "FILESYSTEM_SNAPSHOT_CREATED"]);
    await client.run("bash", "echo changed > file").until("EXECUTION_DONE");
    const { client: fresh } = await server.create({ filesystem_snapshot_name: "base" });
    expect(await fresh.run("bash", "cat file").until("EXECUTION_DONE")).toContain("out:shared\n");
  });

  test("that is pinned is kept when its name moves to another one", async () => {
    const server = await startTestServer();
    const { client } = await server.create();
    const take = async () =>
      await client.send({ action: "snapshot_filesystem", name: "base" }).until("FILESYSTEM_SNAPSHOT_CREATED");
    await take();
    const [first] = (await server.durable.snapshots.list()) ?? [];
    await server.durable.snapshots.amend(first?.id ?? "", { pinned: true });
    await take();
    const left = (await server.durable.snapshots.list()) ?? [];
    expect(left.find(({ id }) => id === first?.id)).toMatchObject({ name: null, pinned: true });
    expect([left.length, server.problems]).toEqual([2, []]);
  });

  test("that is missing is reported with its name", async () => {
    const server = await startTestServer();
    const client = server.connect("/create").send({ filesystem_snapshot_name: "base" });
    const error = "error:Filesystem snapshot not found: base";
    expect(await client.untilClosed()).toEqual(["CREATING", "CREATION_ERROR", error, 4000]);
  });

  test("while executing: the execution continues", async () => {
    const server = await startTestServer();
    const { client } = await server.create();
    await client.run("bash", "read x; echo $x").until("EXECUTION_RUNNING");
    expect(
      await client.send({ action: "snapshot_filesystem", name: "base" }).until("FILESYSTEM_SNAPSHOT_CREATED"),
    ).toEqual(["FILESYSTEM_SNAPSHOT_CREATING", "FILESYSTEM_SNAPSHOT_CREATED"]);
    expect(await client.send({ event: "stdin", data: "on\n" }).until("EXECUTION_DONE")).toEqual([
      "out:on\n",
      "EXECUTION_DONE",
    ]);
  });

  test.each([
    ["a name with a path", { name: "../../etc" }],
    ["a name that is too long", { name: "x".repeat(200) }],
    ["a name with NUL", { name: "a\0b" }],
  ])("%s", async (_what, fields) => {
    const server = await startTestServer();
    const { client } = await server.create();
    expect(await client.send({ action: "snapshot_filesystem", ...fields }).until("error")).toEqual([
      "FILESYSTEM_SNAPSHOT_CREATING",
      "FILESYSTEM_SNAPSHOT_ERROR",
      expect.stringMatching(/^error:./),
    ]);
    expect(await client.run("bash", "echo on").until("EXECUTION_DONE")).toContain("out:on\n");
  });

  test.each([[{}], [{ name: "" }], [{ name: 5 }]])("no name: %j", async (fields) => {
    const server = await startTestServer();
    const { client } = await server.create();
    const came = await client.send({ action: "snapshot_filesystem", ...fields }).until("error");
    expect(came).toEqual([
      "FILESYSTEM_SNAPSHOT_CREATING",
      "FILESYSTEM_SNAPSHOT_ERROR",
      expect.stringMatching(/^error:./),
    ]);
  });

  test("on a server without a store", async () => {
    const server = await startTestServer({ store: null });
    const { client } = await server.create();
    expect(await client.send({ action: "snapshot_filesystem", name: "base" }).until("error")).toEqual([
      "FILESYSTEM_SNAPSHOT_CREATING",
      "FILESYSTEM_SNAPSHOT_ERROR",
      "error:Filesystem snapshot is not enabled on the server.",
    ]);
  });
});
