import type { SnapshotInfo } from "@sandboxer/protocol";
import { expect, test } from "vitest";
import { startCli } from "../support/run-cli.ts";

test("snapshots are taken, restored, listed, shown, named and deleted", async () => {
  const cli = await startCli();
  const web = await cli.id(["create", "--name", "web"]);
  await cli.id(["exec", "web", "-c", "echo one > /tmp/x; echo"]);
  const snapshot = await cli(["snapshot", "web", "--name", "before", "--label", "release=3"]);
  expect(snapshot).toMatchObject({
    code: 0,
    out: expect.stringMatching(/^[0-9a-f-]{36}\n$/),
    err: expect.stringContaining("keeps running"),
  });
  const id = snapshot.out.trim();
  const shown = JSON.parse((await cli(["snapshots", "get", "before", "--json"])).out) as SnapshotInfo;
  expect(shown).toMatchObject({ id, name: "before", sandbox_id: web, state: "ready", labels: { release: "3" } });
  expect((await cli(["snapshots", "list"])).out).toMatch(new RegExp(`^${id.slice(0, 8)} +before +ready +full `, "m"));
  expect(JSON.parse((await cli(["snapshots", "--json", "list"])).out)).toMatchObject({ items: [{ id }] });
  expect((await cli(["snapshots", "-q", "--sandbox", "web"])).out).toBe(`${id}\n`);
  expect((await cli(["snapshots", "list", "-q", "--sandbox", "web", "--label", "release=3"])).out).toBe(`${id}\n`);
  expect((await cli(["snapshots", "get", id.slice(0, 8)])).out).toMatch(/^name +before$/m);

  await cli.id(["exec", "web", "-c", "echo two > /tmp/x; echo"]);
  const again = await cli.id(["restore", "before", "--name", "again"]);
  expect(again).not.toBe(web);
  expect((await cli(["exec", "again", "--", "cat", "/tmp/x"])).out).toBe("one\n");
  expect((await cli(["exec", "web", "--", "cat", "/tmp/x"])).out).toBe("two\n");

  expect(await cli.id(["rewind", "before"])).toBe(web);
  expect((await cli(["exec", "web", "--", "cat", "/tmp/x"])).out).toBe("one\n");

  await cli.id(["snapshots", "name", "before", "renamed"]);
  expect((await cli(["snapshots", "get", "before"])).code).toBe(4);
  const near = await cli(["restore", "renamd"]);
  expect(near).toMatchObject({ code: 4, out: "", err: expect.stringContaining("Did you mean renamed?") });

  await cli.id(["rm", "web", "again"]);
  expect(await cli(["snapshots", "rm", "renamed"])).toMatchObject({ code: 0, out: `${id}\n` });
  expect((await cli(["snapshots", "list", "-q"])).out).toBe("");
});

test("fork prints the id of each copy, and tree draws them", async () => {
  const cli = await startCli();
  await cli.id(["create", "--name", "web"]);
  const forked = await cli(["fork", "web", "--count", "2"]);
  const ids = forked.out.trim().split("\n");
  expect(ids).toHaveLength(2);
  const { out } = await cli(["tree"]);
  expect(out).toMatch(
    /^web \(.{8}\) running, .*\n└─ snapshot .{8} full, .*\n {3}├─ .{8} running, .*\n {3}└─ .{8} running/,
  );
  for (const id of ids) expect(out).toContain(id.slice(0, 8));
  expect((await cli(["tree", ids[0] ?? ""])).out).toMatch(new RegExp(`^${ids[0]?.slice(0, 8)} running[^\n]*\n$`));
  expect((await cli(["fork", "web", "--count", "0"])).code).toBe(2);
});

test("diff shows added, changed and removed files", async () => {
  const cli = await startCli();
  await cli.id(["create", "--name", "web"]);
  await cli.id(["exec", "web", "-c", "echo 1 > /tmp/changed; echo 1 > /tmp/removed; echo"]);
  await cli.id(["snapshot", "web", "--name", "a"]);
  await cli.id(["exec", "web", "-c", "echo 22 > /tmp/changed; rm /tmp/removed; echo 1 > /tmp/added; echo"]);
  await cli.id(["snapshot", "web", "--name", "b"]);
  const diff = await cli(["snapshots", "diff", "a", "b"]);
  expect(diff.code).toBe(0);
  expect(diff.out.split("\n")).toEqual(expect.arrayContaining(["A /tmp/added", "M /tmp/changed", "D /tmp/removed"]));
  expect(diff.err).toMatch(/1 added, \d changed, 1 removed\./);
  const live = await cli(["snapshots", "diff", "a", "sandbox:web"]);
  expect(live.out).toContain("A /tmp/added\n");
});
