import { spawnSync } from "node:child_process";
import { expect, test } from "vitest";
import { runProgram } from "../../src/program.ts";
import { fakeIo } from "../support/fake-io.ts";
import { startCli, type Cli } from "../support/run-cli.ts";

async function complete(cli: Cli, line: string): Promise<string[]> {
  const { code, out } = await cli(["__complete", "--", line]);
  expect(code).toBe(0);
  return out.split("\n").filter(Boolean);
}

test("commands, subcommands, options and their values are completed", async () => {
  const cli = await startCli();
  expect(await complete(cli, "sandboxer sna")).toEqual(["snapshot", "snapshots"]);
  expect(await complete(cli, "sandboxer snapshots ")).toEqual(["diff", "get", "list", "name", "pin", "rm", "unpin"]);
  expect(await complete(cli, "sandboxer create --na")).toEqual(["--name"]);
  expect(await complete(cli, "sandboxer ls --state pa")).toEqual(["paused"]);
  expect(await complete(cli, "sandboxer completion ")).toEqual(["bash", "fish", "zsh"]);
  expect(await complete(cli, "sandboxer nosuch ")).toEqual([]);
});

test("current names of sandboxes, snapshots, processes and paths are completed", async () => {
  const cli = await startCli();
  await cli.id(["create", "--name", "web"]);
  await cli.id(["create", "--name", "worker"]);
  await cli.id(["snapshot", "web", "--name", "before"]);
  const process = await cli.id(["exec", "-d", "web", "--", "sleep", "60"]);
  expect(await complete(cli, "sandboxer exec we")).toEqual(["web"]);
  expect(await complete(cli, "sandboxer rm web w")).toEqual(["web", "worker"]);
  expect(await complete(cli, "sandboxer restore ")).toEqual(["before"]);
  expect(await complete(cli, "sandboxer snapshots diff before ")).toEqual(["before"]);
  expect(await complete(cli, "sandboxer kill web ")).toEqual([process]);
  expect(await complete(cli, "sandboxer cp w")).toEqual(["web:/", "worker:/"]);
  expect(await complete(cli, "sandboxer files ls web:/t")).toContain("web:/tmp/");
  expect(await complete(cli, "sandboxer exec web -- l")).toEqual([]);
});

test("an unreachable server completes nothing and prints nothing", async () => {
  const io = fakeIo({ SANDBOXER_URL: "http://127.0.0.1:1" });
  expect(await runProgram(["__complete", "--", "sandboxer exec w"], io)).toBe(0);
  expect(io.out() + io.err()).toBe("");
});

test("the script for bash works in bash", async () => {
  const cli = await startCli();
  const { out: script } = await cli(["completion", "bash"]);
  const shell = `
    sandboxer() { printf '%s\\n' "$ANSWER"; }
    ${script}
    try() { COMP_LINE="$1"; COMP_POINT=\${#1}; ANSWER="$2"; _sandboxer 2>/dev/null; echo "[\${COMPREPLY[*]}]"; }
    try "sandboxer exec w" $'web\\nworker'
    try "sandboxer cp web:/t" "web:/tmp/"
    try "sandboxer cp x" ""`;
  const { stdout, status } = spawnSync("bash", ["-c", shell], { encoding: "utf8" });
  expect(status).toBe(0);
  expect(stdout.replaceAll("\n", " ").trim()).toBe("[web worker] [/tmp/] []");
});

test.each(["bash", "zsh", "fish"])("there is a script for %s that asks this program", async (shell) => {
  const io = fakeIo();
  expect(await runProgram(["completion", shell], io)).toBe(0);
  expect(io.out()).toContain("sandboxer __complete --");
});

test("other shells are refused with a list of the supported ones", async () => {
  const io = fakeIo();
  expect(await runProgram(["completion", "csh"], io)).toBe(2);
  expect(io.err()).toContain("bash, zsh, fish");
});
