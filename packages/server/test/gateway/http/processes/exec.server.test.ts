import { SandboxerError } from "@sandboxer/protocol";
import { expect, test } from "vitest";
import { eventually } from "../../../../../../test/kit/eventually.ts";
import { FakeBackend } from "../../../../src/backends/fake/index.ts";
import { startTestServer } from "../../../../../../test/kit/server/test-server.ts";
import { lines, SandboxClient, text } from "./support.ts";

test("an argv, a line for the shell and code each run, with exit code and both streams", async () => {
  const box = await SandboxClient.create(await startTestServer());
  expect(await box.exec({ command: ["echo", "a b", "$x"] })).toMatchObject({ exit_code: 0, stdout: "a b $x\n" });
  const shell = await box.exec({ shell: "echo out; echo err >&2; exit 3" });
  expect(shell).toMatchObject({ exit_code: 3, signal: null, stdout: "out\n", stderr: "err\n", truncated: false });
  const code = await box.exec({ language: "python", code: "print('grüße')" });
  expect(code).toMatchObject({ exit_code: 0, stdout: "grüße\n" });
});

test("environment, working folder and stdin are those of the request", async () => {
  const box = await SandboxClient.create(await startTestServer(), { env: { A: "sandbox", B: "sandbox" } });
  const request = { shell: "printenv A; printenv B; pwd; cat", env: { B: "request" }, cwd: "/tmp", stdin: "typed" };
  expect((await box.exec(request)).stdout).toBe("sandbox\nrequest\n/tmp\ntyped");
  expect((await box.exec({ shell: "cat", stdin: "" })).stdout).toBe("");
  const big = "x".repeat(300_000);
  expect((await box.exec({ shell: "cat", stdin: big })).stdout).toBe(big);
});

test("a process runs as the user of the request, or of the sandbox", async () => {
  const server = await startTestServer();
  const box = await SandboxClient.create(server);
  expect((await box.exec({ shell: "printenv HOME", user: "root" })).stdout).toBe("/root\n");
  expect((await box.exec({ shell: "printenv HOME" })).stdout).toBe("/workspace\n");
  const rooted = await SandboxClient.create(server, { user: "root" });
  expect((await rooted.exec({ shell: "printenv HOME" })).stdout).toBe("/root\n");
  expect((await rooted.call<{ user: string }>("GET", "")).body.user).toBe("root");
  for (const user of ["nobody-here", "", "a b", "a:b:c", "../root", "-x", "ro\0ot", "x".repeat(300)]) {
    const answer = await box.call("POST", "/exec", { shell: "true", user });
    expect([user, answer.status, answer.body.error.code]).toEqual([user, 400, "bad_request"]);
  }
});

test("a backend whose programs run as one user refuses another", async () => {
  const server = await startTestServer({ backend: new FakeBackend({ capabilities: { users: false } }) });
  const box = await SandboxClient.create(server);
  const answer = await box.call("POST", "/exec", { shell: "true", user: "root" });
  expect([answer.status, answer.body.error]).toEqual([
    422,
    expect.objectContaining({ code: "not_supported", message: "The backend fake runs all programs as one user." }),
  ]);
  await expect(SandboxClient.create(server, { user: "root" })).rejects.toThrow("not_supported");
});

test("code that is too long for an argument is passed in a file, which is removed afterwards", async () => {
  const server = await startTestServer();
  const box = await SandboxClient.create(server);
  const code = `# ${"x".repeat(200_000)}\nprint("ran")`;
  await box.exec({ language: "python", code });
  const sandbox = await server.live(box.id);
  await eventually("the file is gone", async () => (await sandbox.handle.files.list("/tmp")).length === 0);
});

test("a line for the shell runs where there is no bash", async () => {
  const server = await startTestServer();
  const box = await SandboxClient.create(server);
  const { handle } = await server.live(box.id);
  const exec = handle.exec.bind(handle);
  handle.exec = async (command, options) => {
    if (command.argv[0] === "bash") throw new SandboxerError("file_not_found", "bash: not found");
    return exec(command, options);
  };
  expect(await box.exec({ shell: "echo plain" })).toMatchObject({ exit_code: 0, stdout: "plain\n" });
  expect(await box.processes()).toMatchObject([{ command: ["/bin/sh", "-c", "echo plain"] }]);
});

test("a program that cannot be started is an error, and nothing is left", async () => {
  const box = await SandboxClient.create(await startTestServer());
  const failures = [
    [{ command: ["no-such-program"] }, 404, "file_not_found"],
    [{ shell: "true", cwd: "/no/such/folder" }, 404, "file_not_found"],
    [{ command: ["true"], shell: "true" }, 400, "bad_request"],
    [{ code: "print(1)" }, 400, "bad_request"],
    [{ command: [] }, 400, "bad_request"],
    [{ shell: "true", cwd: "relative" }, 400, "bad_request"],
  ] as const;
  for (const [body, status, code] of failures) {
    const answer = await box.call("POST", "/exec", body);
    expect([body, answer.status, answer.body.error.code]).toEqual([body, status, code]);
  }
  expect(await box.processes()).toEqual([]);
});

test("several run at once, beside an execution of the WebSocket protocol", async () => {
  const server = await startTestServer();
  const { client, id } = await server.create();
  const box = new SandboxClient(server, id);
  await client.run("bash", "read x; echo $x").until("EXECUTION_RUNNING");
  const waiting = await box.spawn({ shell: "read x; echo got $x" });
  const results = await Promise.all(Array.from({ length: 20 }, (_, n) => box.exec({ command: ["echo", `${n}`] })));
  expect(results.map(({ stdout }) => stdout)).toEqual(Array.from({ length: 20 }, (_, n) => `${n}\n`));
  await box.stdin(waiting.id, "it\n");
  expect(text(await box.output(waiting.id, "?follow=true&offset=0"))).toBe("got it\n");
  client.send({ event: "stdin", data: "ws\n" });
  expect(await client.until("EXECUTION_DONE")).toEqual(["out:ws\n", "EXECUTION_DONE"]);
});

test("a process that timed out is asked to end", async () => {
  const box = await SandboxClient.create(await startTestServer());
  const asked = await box.exec({ shell: "echo begun; sleep 300", timeout: 0.05 });
  expect(asked).toMatchObject({ exit_code: null, signal: "SIGTERM", stdout: "begun\n", timed_out: true });
  const inTime = await box.exec({ shell: "echo done", timeout: 60 });
  expect(inTime).toMatchObject({ exit_code: 0, timed_out: false });
});

test("output beyond the requested limit is read and dropped", async () => {
  const box = await SandboxClient.create(await startTestServer());
  const cut = await box.exec({ shell: "yes 0123456 | head -c 3000000; echo end >&2", max_output_bytes: 10 });
  expect(cut).toMatchObject({ exit_code: 0, stdout: "0123456\n01", stderr: "", truncated: true });
  const whole = await box.exec({ shell: "yes 0123456 | head -c 3000000" });
  expect([whole.stdout.length, whole.truncated]).toEqual([3_000_000, false]);
});

test("bytes that are not text are complete, in base64", async () => {
  const box = await SandboxClient.create(await startTestServer());
  const answer = await box.call<{ stdout: string }>("POST", "/exec?encoding=base64", { shell: "printf '\\xff\\x00a'" });
  expect([...Buffer.from(answer.body.stdout, "base64")]).toEqual([0xff, 0, 0x61]);
});

test("streamed, each line has its type and its end offset", async () => {
  const box = await SandboxClient.create(await startTestServer());
  const response = await box.stream({ shell: "echo one; read x; echo $x >&2; exit 4" });
  expect(response.headers.get("content-type")).toBe("application/x-ndjson");
  const all = lines(response);
  const started = (await all.next()).value;
  if (started?.event !== "started") throw new Error(JSON.stringify(started));
  expect((await all.next()).value).toMatchObject({ event: "stdout", data: "one\n", offset: 4 });
  await box.stdin(started.process_id, "two\n");
  const rest = await Array.fromAsync(all);
  expect(rest).toMatchObject([
    { event: "stderr", data: "two\n", offset: 8 },
    { event: "exit", exit_code: 4, signal: null, offset: 8, timed_out: false },
  ]);
});

test("a client that disconnects leaves the process running, by default", async () => {
  const box = await SandboxClient.create(await startTestServer());
  const leave = async (body: object): Promise<string> => {
    const gone = new AbortController();
    const all = lines(await box.stream(body, { signal: gone.signal }));
    const started = (await all.next()).value;
    gone.abort();
    await all.return(undefined).catch(() => {});
    return started?.event === "started" ? started.process_id : "";
  };
  const kept = await leave({ shell: "echo before; read x; echo after" });
  const killed = await leave({ shell: "sleep 300", on_disconnect: "kill" });
  await eventually("it is killed", async () => (await box.process(killed)).signal === "SIGKILL");
  expect(await box.process(kept)).toMatchObject({ state: "running" });
  await box.stdin(kept, "\n");
  expect(text(await box.output(kept, "?follow=true&offset=0"))).toBe("before\nafter\n");
});

test("a terminal has a size, which can be changed, and accepts input", async () => {
  const box = await SandboxClient.create(await startTestServer());
  const { id, pty } = await box.spawn({ shell: "stty size; read x; stty size", pty: { rows: 24, columns: 80 } });
  expect(pty).toBe(true);
  expect((await box.call("POST", `/processes/${id}/resize`, { rows: 50, columns: 100 })).status).toBe(204);
  await box.stdin(id, "go\n");
  const shown = text(await box.output(id, "?follow=true&offset=0"));
  expect(shown).toContain("50 100");
  const plain = await box.spawn({ shell: "sleep 300" });
  expect((await box.call("POST", `/processes/${plain.id}/resize`, { rows: 50, columns: 100 })).status).toBe(400);
});
