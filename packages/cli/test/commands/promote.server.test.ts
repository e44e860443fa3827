import { expect, test } from "vitest";
import { startCli } from "../support/run-cli.ts";

interface Compared {
  base: { kind: string; id: string };
  items: { name: string; files: { added: number } | null; run: { exit_code: number; stdout: string } | null }[];
}

test("forks are compared, the best one is promoted, and the original keeps its identity", async () => {
  const cli = await startCli();
  const id = await cli.id(["create", "--name", "work"]);
  await cli.id(["exec", "work", "-c", "echo old > /tmp/x; echo"]);
  await cli.id(["fork", "work", "--count", "3", "--name", "fix"]);
  await cli.id(["exec", "fix-1", "-c", "echo one > /tmp/x; echo"]);
  await cli.id(["exec", "fix-2", "-c", "echo two > /tmp/x; echo fixed > /tmp/added; echo"]);
  await cli.id(["exec", "fix-2", "--detach", "-c", "sleep 1000"]);

  const shown = await cli(["compare", "fix-1", "fix-2", "work", "--", "cat", "/tmp/added"]);
  expect(shown.code).toBe(0);
  expect(shown.out).toMatch(/^ID +NAME +FILES +PROCESSES +PORTS +MEMORY +DISK +CPU +COMMAND$/m);
  expect(shown.out).toMatch(/ fix-1 .* exit 1$/m);
  expect(shown.out).toMatch(/ fix-2 +\+1 ~\d+ -0 +1 .* exit 0$/m);
  expect(shown.out).toMatch(/^Files of fix-2, compared with snapshot .{8}$/m);
  expect(shown.out).toContain("A /tmp/added\n");
  expect(shown.out).toMatch(/Output in fix-2\nfixed\n/);
  const shell = ["compare", "fix-1", "fix-2", "--json", "--shell", "cat /tmp/x"];
  const compared = JSON.parse((await cli(shell)).out) as Compared;
  expect(compared.items.map(({ run }) => run?.stdout)).toEqual(["one\n", "two\n"]);
  expect(compared.items[1]).toMatchObject({ name: "fix-2", run: { exit_code: 0 }, files: { added: 1 } });

  const promoted = await cli(["promote", "fix-2", "--discard-others"]);
  expect(promoted).toMatchObject({
    code: 0,
    out: `${id}\n`,
    err: expect.stringMatching(/work has the state of fix-2\.[^]*former state is snapshot .{8}\.[^]*2 other forks/),
  });
  expect((await cli(["exec", "work", "--", "cat", "/tmp/x"])).out).toBe("two\n");
  expect((await cli(["ls", "-q"])).out).toBe(`${id}\n`);
  const former = await cli.id(["snapshots", "-q", "--sandbox", "work"]);
  await cli.id(["rewind", former]);
  expect((await cli(["exec", "work", "--", "cat", "/tmp/x"])).out).toBe("old\n");
});

test("sandboxes without a common snapshot are compared with the first one", async () => {
  const cli = await startCli();
  await cli.id(["create", "--name", "a"]);
  const first = await cli.id(["create", "--name", "b"]);
  await cli.id(["exec", "a", "-c", "echo > /tmp/only-in-a; echo"]);
  const compared = JSON.parse((await cli(["compare", "b", "a", "--json"])).out) as Compared;
  expect(compared.base).toEqual({ kind: "sandbox", id: first });
  expect(compared.items.map(({ files }) => files?.added)).toEqual([0, 1]);
  expect(compared.items.map(({ run }) => run)).toEqual([null, null]);
});

test("a refused comparison or promotion gives the reason", async () => {
  const cli = await startCli();
  await cli.id(["create", "--name", "work"]);
  await cli.id(["create", "--name", "other"]);
  expect(await cli(["compare", "work", "work"])).toMatchObject({
    code: 2,
    err: expect.stringContaining("two different"),
  });
  expect(await cli(["compare", "work", "other", "-c", "true", "--", "true"])).toMatchObject({ code: 2 });
  expect(await cli(["promote", "work"])).toMatchObject({ code: 2, err: expect.stringContaining("from scratch") });
  const fork = await cli.id(["fork", "work"]);
  const refused = await cli(["promote", fork, "--into", "other"]);
  expect(refused).toMatchObject({ code: 2, err: expect.stringContaining("was not forked or restored from") });
});
