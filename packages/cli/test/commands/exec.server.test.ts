import { expect, test } from "vitest";
import { runProgram } from "../../src/program.ts";
import { startProxy } from "../support/proxy.ts";
import { startCli } from "../support/run-cli.ts";

test("stdout, stderr and the exit code are those of the command", async () => {
  const cli = await startCli();
  await cli.id(["create", "--name", "web"]);
  expect(await cli(["exec", "web", "--", "echo", "hi"])).toEqual({ code: 0, out: "hi\n", err: "" });
  expect(await cli(["exec", "web", "-c", "echo out; echo err >&2; exit 7"])).toEqual({
    code: 7,
    out: "out\n",
    err: "err\n",
  });
  expect(await cli(["exec", "web", "-c", "exit 255"])).toEqual({ code: 255, out: "", err: "" });
  expect((await cli(["exec", "web", "-c", "kill -9 $$"])).code).toBe(137);
  const python = await cli(["exec", "web", "--language", "python", "--code", "print(6 * 7)"]);
  expect(python).toEqual({ code: 0, out: "42\n", err: "" });
});

test("options before the command are ours, options after it belong to the command", async () => {
  const cli = await startCli();
  await cli.id(["create", "--name", "web"]);
  expect((await cli(["exec", "web", "echo", "-x", "--json"])).out).toBe("-x --json\n");
  expect((await cli(["exec", "--env", "A=1", "web", "-e", "B=2", "--", "bash", "-c", "echo $A $B --"])).out).toBe(
    "1 2 --\n",
  );
  expect(JSON.parse((await cli(["exec", "web", "--json", "echo", "--json"])).out)).toMatchObject({
    exit_code: 0,
    signal: null,
    stdout: "--json\n",
    timed_out: false,
  });
});

test("--user names the user of a command, and of a sandbox", async () => {
  const cli = await startCli();
  await cli.id(["create", "--name", "web"]);
  expect((await cli(["exec", "--user", "root", "web", "--", "printenv", "HOME"])).out).toBe("/root\n");
  expect((await cli(["exec", "web", "--", "printenv", "HOME"])).out).toBe("/workspace\n");
  expect((await cli(["run", "--user", "root", "--", "printenv", "HOME"])).out).toBe("/root\n");
  await cli.id(["create", "--name", "rooted", "-u", "root"]);
  expect((await cli(["exec", "rooted", "--", "printenv", "HOME"])).out).toBe("/root\n");
  expect(await cli(["exec", "-u", "nope", "web", "--", "true"])).toMatchObject({
    code: 2,
    err: expect.stringContaining('The sandbox has no user "nope".') as string,
  });
});

test("our own failures exit with the code of the table, or a chosen code, and print a line on stderr", async () => {
  const cli = await startCli();
  const failed = await cli(["exec", "nosuch", "--", "true"]);
  expect(failed).toMatchObject({
    code: 4,
    out: "",
    err: expect.stringMatching(/^sandboxer: There is no sandbox "nosuch"/),
  });
  expect((await cli(["exec", "--error-code", "125", "nosuch", "--", "true"])).code).toBe(125);
  const json = await cli(["exec", "--json", "nosuch", "--", "true"]);
  expect(JSON.parse(json.out)).toMatchObject({ error: { code: "sandbox_not_found" } });
  expect((await cli(["exec", "nosuch"])).code).toBe(2);
  expect((await cli(["exec", "-it", "nosuch", "--", "bash"])).err).toContain("needs a terminal");
  expect((await cli(["shell", "nosuch"])).err).toContain("needs a terminal");
});

test("with -i our stdin is the command's stdin, and without it stdin is empty", async () => {
  const cli = await startCli();
  await cli.id(["create", "--name", "web"]);
  const text = "line\n".repeat(50_000);
  const sent = await cli(["exec", "-i", "web", "--", "cat"], { stdin: text });
  expect(sent.code).toBe(0);
  expect(sent.out === text).toBe(true);
  expect(await cli(["exec", "web", "--", "cat"], { stdin: "unseen" })).toEqual({ code: 0, out: "", err: "" });
});

test("stdin whose arrival is unknown is an error, and the program does not complete with partial input", async () => {
  const cli = await startCli();
  await cli.id(["create", "--name", "web"]);
  const proxy = await startProxy(cli.server.url);
  const rest = Promise.withResolvers<void>();
  const stdin = async function* (): AsyncGenerator<Uint8Array> {
    yield Buffer.alloc(200_000, "x");
    await rest.promise;
  };
  const io = cli.io({ env: { SANDBOXER_URL: proxy.url }, stdin: stdin() });
  const code = runProgram(["exec", "-i", "web", "-c", "echo begun; sleep 60; cat"], io);
  await expect.poll(() => io.out()).toBe("begun\n");
  await expect.poll(async () => (await cli(["ps", "web"])).out).toContain("running");
  proxy.cut();
  expect(await code).toBe(10);
  expect(io.err()).toContain("The connection was lost while stdin was being sent.\n  It is unknown how much");
  await expect.poll(async () => (await cli(["ps", "web"])).out).toContain("exited (SIGKILL)");
  rest.resolve();
});

test("exec resumes a paused sandbox, and fails with --no-wake", async () => {
  const cli = await startCli();
  await cli.id(["create", "--name", "web"]);
  await cli.id(["checkpoint", "web"]);
  expect((await cli(["exec", "--no-wake", "web", "--", "echo", "no"])).code).toBe(5);
  const woken = await cli(["exec", "web", "--", "echo", "yes"]);
  expect(woken).toEqual({ code: 0, out: "yes\n", err: "sandboxer: the sandbox is paused; resuming it.\n" });
});

test("run creates a sandbox and deletes it, however it ends; --keep leaves it", async () => {
  const cli = await startCli();
  expect(await cli(["run", "--", "echo", "once"])).toMatchObject({ code: 0, out: "once\n" });
  expect((await cli(["run", "-c", "exit 9"])).code).toBe(9);
  expect((await cli(["run", "--", "no-such-program"])).code).toBe(4);
  expect((await cli(["ls", "-q"])).out).toBe("");
  const kept = await cli(["run", "--keep", "--name", "left", "--", "echo", "x"]);
  expect(kept).toMatchObject({ code: 0, out: "x\n", err: "sandboxer: kept left.\n" });
  expect((await cli(["exec", "left", "--", "echo", "again"])).out).toBe("again\n");
});

test("run --key uses the same sandbox again", async () => {
  const cli = await startCli();
  expect((await cli(["run", "--key", "build", "-c", "echo made > /tmp/x"])).code).toBe(0);
  expect((await cli(["run", "--key", "build", "-c", "cat /tmp/x"])).out).toBe("made\n");
  expect((await cli(["ls", "-q"])).out.trim().split("\n")).toHaveLength(1);
});

test("a detached process is listed by ps, read by logs and ended by kill", async () => {
  const cli = await startCli();
  await cli.id(["create", "--name", "web"]);
  const process = await cli.id(["exec", "-d", "web", "-c", "echo begun; sleep 60"]);
  await expect.poll(async () => (await cli(["logs", "web", process])).out).toBe("begun\n");
  expect((await cli(["ps", "web"])).out).toMatch(new RegExp(`^${process.slice(0, 8)} +\\d+ +running +no `, "m"));
  const followed = cli(["logs", "-f", "web", process.slice(0, 6)]);
  expect((await cli(["kill", "web", process, "--signal", "KILL"])).out).toBe(`${process}\n`);
  expect(await followed).toEqual({ code: 0, out: "begun\n", err: "" });
  expect((await cli(["ps", "web"])).out).toContain("exited (SIGKILL)");
  expect((await cli(["kill", "web", "nosuch"])).code).toBe(4);
  const ended = await cli(["attach", "web", process]);
  expect(ended).toMatchObject({ code: 137, out: "begun\n" });
});

test("logs without a process uses the only one, and never guesses", async () => {
  const cli = await startCli();
  await cli.id(["create", "--name", "web"]);
  expect((await cli(["logs", "web"])).code).toBe(4);
  await cli.id(["exec", "web", "--", "echo", "one"]);
  expect((await cli(["logs", "web"])).out).toBe("one\n");
  await cli.id(["exec", "web", "--", "echo", "two"]);
  expect(await cli(["logs", "web"])).toMatchObject({ code: 2, out: "", err: expect.stringContaining("Choose one: ") });
});

test("attach to a process shows its output so far and follows it; the exit code is passed through", async () => {
  const cli = await startCli();
  await cli.id(["create", "--name", "web"]);
  const process = await cli.id(["exec", "-d", "web", "-c", "echo first; read line; echo got $line; exit 3"]);
  const attached = await cli(["attach", "web", process], { stdin: "word\n" });
  expect(attached).toMatchObject({ code: 3, out: "first\ngot word\n" });
  expect((await cli(["attach", "web", process, "--from", "6"])).out).toBe("got word\n");
});

test("attach follows a process of a sandbox on another server", async () => {
  const one = await startCli();
  const two = await startCli({ store: one.server.store });
  await one.id(["create", "--name", "web"]);
  const process = await one.id(["exec", "-d", "web", "-c", "echo first; read line; echo got $line; exit 3"]);
  await one.id(["handoff", "web", "--to", two.server.url]);
  const attached = await one(["attach", "web", process.slice(0, 8)], { stdin: "word\n" });
  expect(attached).toMatchObject({ code: 3, out: "first\ngot word\n" });
  expect(await two.json(["get", "web"])).toMatchObject({ owner: { here: true } });
});

test("the end of our stdin closes the command's stdin only on request", async () => {
  const cli = await startCli();
  await cli.id(["create", "--name", "web"]);
  const process = await cli.id(["exec", "-d", "web", "--", "cat"]);
  const looking = cli(["attach", "web", process], { stdin: "one\n" });
  await expect.poll(async () => (await cli(["logs", "web", process])).out).toBe("one\n");
  expect((await cli(["ps", "web"])).out).toContain("running");
  expect((await cli(["attach", "web", process, "--close-stdin"], { stdin: "two\n" })).out).toBe("one\ntwo\n");
  expect((await looking).code).toBe(5);
});

test("without a terminal the first Ctrl-C goes to the program", async () => {
  const cli = await startCli();
  await cli.id(["create", "--name", "web"]);
  const io = cli.io();
  const code = runProgram(["exec", "web", "-c", "echo begun; sleep 60"], io);
  await expect.poll(() => io.out()).toBe("begun\n");
  io.signal("SIGINT");
  expect(await code).toBe(130);
});

test("output continues through a handoff, and no byte is lost or repeated", async () => {
  const one = await startCli();
  const two = await startCli({ store: one.server.store });
  await one.id(["create", "--name", "web"]);
  const io = one.io();
  const code = runProgram(["exec", "web", "-c", "for i in 1 2 3 4 5 6 7 8 9 10; do echo $i; sleep 0.1; done"], io);
  await expect.poll(() => io.out()).toContain("2\n");
  await one.id(["handoff", "web", "--to", two.server.url]);
  expect(await code).toBe(0);
  expect(io.out()).toBe("1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n");
});
