import type { Carried, SandboxRecord } from "@sandboxer/protocol";
import { expect, test } from "vitest";
import { FakeBackend } from "../../../server/src/backends/fake/index.ts";
import { startTestServer } from "../../../../test/kit/server/test-server.ts";
import { runProgram } from "../../src/program.ts";
import { fakeIo } from "../support/fake-io.ts";

interface Ended {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

/** The CLI at a server that has a second backend. */
async function startCli(): Promise<(...argv: string[]) => Promise<Ended>> {
  const { httpUrl } = await startTestServer({ moreBackends: [new FakeBackend({ name: "other", loads: [] })] });
  return async (...argv) => {
    const io = fakeIo({ SANDBOXER_URL: httpUrl, XDG_CONFIG_HOME: "/nonexistent" });
    const code = await runProgram(argv, io);
    return { code, out: io.out(), err: io.err() };
  };
}

test("restore previews what it keeps on another backend, and keeps it", async () => {
  const cli = await startCli();
  await cli("create", "--name", "web");
  await cli("exec", "web", "-c", "echo one > /workspace/x");
  await cli("snapshot", "web", "--name", "whole");
  await cli("snapshot", "web", "--name", "files", "--mode", "workspace");
  const refused = await cli("restore", "whole", "--backend", "other");
  expect(refused).toMatchObject({ code: 6, out: "", err: expect.stringContaining("It can be restored on fake") });
  const explained = await cli("restore", "files", "--backend", "other", "--explain");
  expect(explained).toMatchObject({ code: 0, err: "" });
  for (const line of [/^memory +lost$/m, /^files +1 of the workspace \(4 B\)$/m, /^env +yes$/m, /^loadable +yes$/m]) {
    expect(explained.out).toMatch(line);
  }
  const why = await cli("restore", "whole", "--backend", "other", "--explain", "--json");
  expect(JSON.parse(why.out) as Carried).toMatchObject({ loadable: false, backends: ["fake"] });
  expect(JSON.parse((await cli("ls", "--json")).out)).toMatchObject({ items: [{ name: "web" }] });
  const restored = await cli("restore", "files", "--backend", "other", "--name", "again");
  expect(restored).toMatchObject({
    code: 0,
    err: expect.stringMatching(/\(other\); memory: lost, files: 1 .*, env: yes/),
  });
  expect((await cli("exec", "again", "--", "cat", "/workspace/x")).out).toBe("one\n");
});

test("a moved sandbox keeps its identity on the other backend", async () => {
  const cli = await startCli();
  const old = (await cli("create", "--name", "web")).out.trim();
  await cli("exec", "web", "-c", "echo one > /workspace/x");
  expect(await cli("move", "web", "--backend", "fake")).toMatchObject({
    code: 2,
    err: expect.stringContaining("already"),
  });
  expect((await cli("move", "web")).code).toBe(2);
  const moved = await cli("move", "web", "--backend", "other");
  expect(moved).toMatchObject({ code: 0, err: expect.stringMatching(/web.* is running \(other\); memory: lost/) });
  const record = JSON.parse((await cli("get", "web", "--json")).out) as SandboxRecord;
  expect([moved.out.trim(), record]).toMatchObject([old, { id: old, backend: "other" }]);
  expect((await cli("exec", "web", "--", "cat", "/workspace/x")).out).toBe("one\n");
});
