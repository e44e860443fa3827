import { describe, expect, test } from "vitest";
import { Sandbox } from "../../src/index.ts";
import { sandbox, server } from "../support/server.ts";

const LOOP = "for i in $(seq 1 5); do echo out $i; echo err $i >&2; done; exit 3";

describe("exec", () => {
  test("awaited, is the collected result; a failing program is a result", async () => {
    const box = await sandbox();
    const result = await box.exec(LOOP);
    expect(result).toEqual({
      processId: expect.any(String),
      stdout: "out 1\nout 2\nout 3\nout 4\nout 5\n",
      stderr: "err 1\nerr 2\nerr 3\nerr 4\nerr 5\n",
      exitCode: 3,
      signal: null,
      hint: null,
      truncated: false,
      timedOut: false,
    });
  });

  test("awaited twice, runs once", async () => {
    const box = await sandbox();
    const execution = box.exec("echo x >> count; cat count");
    expect(await execution).toEqual(await execution);
    expect(await box.exec("cat count")).toMatchObject({ stdout: "x\n" });
  });

  test("iterated, yields lines of both streams or of one", async () => {
    const box = await sandbox();
    expect(await Array.fromAsync(box.exec(LOOP).lines("stderr"))).toEqual([
      "err 1",
      "err 2",
      "err 3",
      "err 4",
      "err 5",
    ]);
    expect(await Array.fromAsync(box.exec(LOOP).lines())).toHaveLength(10);
    const [first] = await Array.fromAsync(box.exec(LOOP).outputLines());
    expect(first).toEqual({ stream: "stdout", text: "out 1" });
  });

  test("iterated, yields bytes with their offsets", async () => {
    const box = await sandbox();
    let end = 0;
    for await (const { data, offset } of box.exec("printf 'a\\0b'; echo x >&2").chunks()) {
      expect(offset).toBe(end + data.length);
      end = offset;
    }
    expect(end).toBe(5);
  });

  test("accepts an argv, and code in a language", async () => {
    const box = await sandbox();
    expect(await box.exec(["echo", "a  b", "$HOME"])).toMatchObject({ stdout: "a  b $HOME\n" });
    expect(await box.exec({ language: "python", code: "print(6 * 7)" })).toMatchObject({ stdout: "42\n" });
  });

  test("accepts variables and a folder", async () => {
    const box = await sandbox({ env: { A: "1", B: "1" } });
    await box.files.mkdir("/tmp/place");
    const result = await box.exec("echo $A$B; pwd", { env: { B: "2" }, cwd: "/tmp/place" });
    expect(result).toMatchObject({ stdout: "12\n/tmp/place\n" });
  });

  test("collects no more than its limit, and reads to the end", async () => {
    const box = await sandbox();
    const result = await box.exec("head -c 3000000 /dev/zero; exit 4", { maxOutputBytes: 1000 });
    expect(result).toMatchObject({ truncated: true, exitCode: 4 });
    expect(result.stdout).toHaveLength(1000);
  });

  test("delivers large output to a slow reader completely", async () => {
    const box = await sandbox();
    let bytes = 0;
    for await (const { data } of box.exec("head -c 5000000 /dev/zero").chunks()) {
      bytes += data.length;
      if (bytes % 7 === 0) await new Promise((resolve) => setImmediate(resolve));
    }
    expect(bytes).toBe(5_000_000);
  });

  test("runs several at once", async () => {
    const box = await sandbox();
    const results = await Promise.all(Array.from({ length: 8 }, (_, index) => box.exec(`sleep 0.01; echo ${index}`)));
    expect(results.map(({ stdout }) => stdout)).toEqual(["0\n", "1\n", "2\n", "3\n", "4\n", "5\n", "6\n", "7\n"]);
  });

  test("with the same key returns the same process", async () => {
    const box = await sandbox();
    const options = { idempotencyKey: "once" };
    const first = await box.exec("echo x >> count; cat count", options);
    expect(await box.exec("echo x >> count; cat count", options)).toEqual(first);
    expect(first.stdout).toBe("x\n");
  });

  test("of a deleted sandbox fails when it is awaited", async () => {
    const box = await sandbox();
    await box.destroy();
    await expect(box.exec("true")).rejects.toMatchObject({ code: expect.stringMatching(/^sandbox_/) });
  });

  test("of a paused sandbox resumes it", async () => {
    const box = await sandbox();
    await box.exec("echo kept > file");
    await box.checkpoint();
    expect(box.record.state).toBe("stored");
    expect(await box.exec("cat file")).toMatchObject({ stdout: "kept\n" });
  });
});

describe("stdin", () => {
  test("as text, bytes or a stream, is written and closed", async () => {
    const box = await sandbox();
    const bytes = new TextEncoder().encode("bytes");
    expect(await box.exec("cat", { stdin: "text" })).toMatchObject({ stdout: "text" });
    expect(await box.exec("cat", { stdin: "" })).toMatchObject({ stdout: "" });
    expect(await box.exec("cat", { stdin: bytes })).toMatchObject({ stdout: "bytes" });
    expect(await box.exec("cat", { stdin: ReadableStream.from([bytes, bytes]) })).toMatchObject({
      stdout: "bytesbytes",
    });
    const large = "0123456789".repeat(200_000);
    expect(await box.exec("cat", { stdin: large })).toMatchObject({ stdout: large });
  });

  test("can be written to while it runs, and ended", async () => {
    const box = await sandbox();
    const execution = box.exec("read a; echo got $a; cat");
    await execution.write("first\n");
    await execution.write("rest");
    await execution.closeStdin();
    expect(await execution).toMatchObject({ stdout: "got first\nrest" });
  });

  test("is a stream to pipe to", async () => {
    const box = await sandbox();
    await using process = await box.spawn("cat");
    const piping = new Blob(["abc", "def"]).stream().pipeTo(process.stdin);
    expect(await process.collect()).toMatchObject({ stdout: "abcdef" });
    await piping;
  });

  test("of a process that has ended cannot be written", async () => {
    const box = await sandbox();
    const process = await box.spawn("true");
    await process.wait();
    await expect(process.write("x")).rejects.toMatchObject({ code: "wrong_state" });
  });
});

describe("ending", () => {
  test("by kill, with a signal", async () => {
    const box = await sandbox();
    const execution = box.exec("echo begun; sleep 60");
    const result = execution.result();
    await execution.kill("SIGTERM");
    expect(await result).toMatchObject({ exitCode: null, signal: "SIGTERM" });
  });

  test("by an abort: the process is killed, and pending calls fail with the reason", async () => {
    const box = await sandbox();
    const abort = new AbortController();
    const process = await box.spawn("echo begun; sleep 60", { signal: abort.signal });
    const reading = (async () => {
      for await (const _ of process.chunks()) abort.abort(new Error("enough"));
    })();
    await expect(reading).rejects.toThrow("enough");
    const again = await box.process(process.id);
    expect(await again.wait()).toMatchObject({ exitCode: null, signal: "SIGKILL" });
  });

  test("by its time limit", async () => {
    const box = await sandbox();
    expect(await box.exec("sleep 60", { timeoutMs: 50 })).toMatchObject({ timedOut: true, exitCode: null });
  });

  test("at the end of a scope", async () => {
    const box = await sandbox();
    const ids: string[] = [];
    {
      await using process = await box.spawn("sleep 60");
      ids.push(process.id);
    }
    await expect(box.process(ids[0] ?? "")).rejects.toMatchObject({ code: "process_not_found" });
  });
});

describe("detaching and attaching again", () => {
  test("after leaving the loop the process keeps running; its offset resumes the reading", async () => {
    const box = await sandbox();
    const process = await box.spawn("for i in $(seq 1 20); do echo $i; sleep 0.002; done");
    let text = "";
    for await (const { data } of process.chunks()) {
      text += new TextDecoder().decode(data);
      if (text.includes("3\n")) break;
    }
    const again = await box.process(process.id, { offset: process.offset });
    expect(text + (await again.collect()).stdout).toBe(
      Array.from({ length: 20 }, (_, index) => `${index + 1}\n`).join(""),
    );
  });

  test("by another client, which replaces the reader; the first one is informed", async () => {
    const { client } = await server();
    const box = await Sandbox.create({ client });
    const process = await box.spawn("echo first; read a; echo $a");
    const chunks = process.chunks();
    await chunks.next();
    const second = await (await Sandbox.attach(box.id, { client })).process(process.id, { offset: 0 });
    const result = second.collect();
    await second.write("second\n");
    await expect(chunks.next()).rejects.toMatchObject({ code: "sandbox_in_use" });
    expect(await result).toMatchObject({ stdout: "first\nsecond\n" });
  });

  test("a detached process never waits for a reader, and the newest output is kept", async () => {
    const box = await sandbox();
    const process = await box.spawn("head -c 3000000 /dev/zero; echo end", { detach: true });
    await expect.poll(async () => (await process.info()).state).toBe("exited");
    const again = await box.process(process.id, { offset: 0 });
    let last = "";
    for await (const { data } of again.chunks()) last = new TextDecoder().decode(data).slice(-4);
    expect(last).toBe("end\n");
    expect(again.offset).toBe(3_000_004);
  });

  test("output has one reader at a time", async () => {
    const box = await sandbox();
    const process = await box.spawn("echo x");
    await process.collect();
    await expect(process.collect()).rejects.toMatchObject({ code: "wrong_state" });
  });

  test("running processes are listed", async () => {
    const box = await sandbox();
    await using process = await box.spawn("sleep 60");
    expect(await box.processes()).toMatchObject([{ id: process.id, state: "running" }]);
    expect((await box.processTable()).map(({ pid }) => pid)).toContain(process.pid);
  });
});

describe("a terminal", () => {
  test("has a size that can change, and accepts typed input", async () => {
    const box = await sandbox();
    const terminal = await box.pty({ command: "read a; stty size; read b; stty size", rows: 30, columns: 100 });
    const lines = terminal.lines();
    await terminal.write("go\n");
    let text = "";
    for await (const line of lines) {
      text += `${line}\n`;
      if (line !== "30 100") continue;
      await terminal.resize({ rows: 40, columns: 120 });
      await terminal.write("go\n");
    }
    expect(text).toContain("40 120\n");
  });
});

test("a server key is sent over HTTP and WebSocket", async () => {
  const { url } = await server({ apiKeys: ["ä key/+="] });
  await expect(Sandbox.create({ url })).rejects.toMatchObject({ code: "unauthorized" });
  await expect(Sandbox.create({ url, apiKey: "wrong" })).rejects.toMatchObject({ code: "unauthorized" });
});

test("with a valid key, output comes over WebSocket", async () => {
  const { url } = await server({ apiKeys: ["the-key"] });
  const box = await Sandbox.create({ url, apiKey: "the-key" });
  expect(await box.exec("echo in")).toMatchObject({ stdout: "in\n" });
});
