import { randomBytes } from "node:crypto";
import { describe, expect, test } from "vitest";
import { eventually } from "../../../../../../test/kit/eventually.ts";
import { ServerProcess, whyNoEngine } from "../../../../../../test/kit/server/server-process.ts";
import { temporaryFolder } from "../../../../../../test/kit/temporary-folder.ts";
import { FilesClient, readTar, tarOf } from "../files/support.ts";
import { ProcessSocket } from "./process-socket.ts";
import { lines, SandboxClient, text } from "./support.ts";

const missing = whyNoEngine();
if (missing !== undefined) console.warn(`The tests of processes over HTTP on gVisor are skipped: ${missing}`);
const DEADLINE_MS = 60_000;
const KEY = { "idempotency-key": "the-key" };
/** Real programs, with a tick every few milliseconds. */
const TICKING = "import time\ni = 0\nwhile True:\n  i += 1\n  print('tick', i)\n  time.sleep(0.003)\n";

const httpOf = (server: ServerProcess): { httpUrl: string } => ({ httpUrl: server.url.replace(/^ws/, "http") });

describe.skipIf(missing !== undefined)("processes and files over HTTP, on gVisor", () => {
  test("commands, terminals, time limits, full logs and files", async () => {
    const server = httpOf(await ServerProcess.start());
    const box = await SandboxClient.create(server, { enable_checkpoint: false, env: { A: "1" } });
    const shell = await box.exec({
      shell: "cat; echo $A$B >&2; pwd; exit 3",
      env: { B: "2" },
      cwd: "/tmp",
      stdin: "in\n",
    });
    expect(shell).toMatchObject({ exit_code: 3, stdout: "in\n/tmp\n", stderr: "12\n", truncated: false });
    const long = await box.exec({ language: "python", code: `# ${"x".repeat(200_000)}\nprint(6 * 7)` });
    expect(long).toMatchObject({ exit_code: 0, stdout: "42\n" });
    const absent = await box.call("POST", "/exec", { command: ["no-such-program"] });
    expect([absent.status, absent.body.error.code]).toEqual([404, "file_not_found"]);
    // Long enough for the shell to start and to set its trap beside other suites.
    const stubborn = await box.exec({ shell: "trap '' TERM; echo on; while :; do sleep 0.1; done", timeout: 3 });
    expect(stubborn).toMatchObject({ exit_code: null, signal: "SIGKILL", stdout: "on\n", timed_out: true });

    const big = await box.exec({ shell: "head -c 5000000 /dev/zero", max_output_bytes: 1000 });
    const bigBytes = Buffer.from(big.stdout, big.stdout_encoding).length;
    expect([bigBytes, big.truncated, big.exit_code]).toEqual([1000, true, 0]);
    const kept = await box.spawn({ shell: "head -c 2000000 /dev/zero" });
    const detached = await box.spawn({ shell: "head -c 2000000 /dev/zero", detach: true });
    await eventually("the detached one has ended", async () => (await box.process(detached.id)).state === "exited");
    expect(await box.process(kept.id)).toMatchObject({ state: "running", acknowledged: 0 });
    const streamed = (await box.output(kept.id, "?follow=true")).at(-1);
    expect(streamed).toMatchObject({ event: "exit", exit_code: 0, offset: 2_000_000 });

    const terminal = await box.spawn({ command: ["bash", "--norc"], pty: { rows: 24, columns: 80 } });
    const socket = new ProcessSocket(`${box.url}/processes/${terminal.id}/attach`, { deadlineMs: DEADLINE_MS });
    // A Ctrl-C between two commands would reach neither: the program says that it is there. dash loses one that comes while it
    // starts another program.
    const command = "stty size; bash -c 'echo up; exec sleep 100'\n";
    socket.send({ action: "resize", rows: 33, columns: 99 }).send(Buffer.from(command));
    await socket.when(() => socket.text.includes("33 99\r\nup\r\n"), "the new size");
    socket.send(Buffer.from("\u0003")).send(Buffer.from("exit 4\n"));
    expect(await socket.event("exit")).toMatchObject({ exit_code: 4 });

    const files = new FilesClient(server, box.id);
    const content = randomBytes(1_000_000);
    const when = new Date("2020-02-03T04:05:06Z");
    const tar = await tarOf([
      { name: "locked/", type: "directory", mode: 0o555, mtime: when },
      { name: "locked/data", content, mode: 0o400, mtime: when },
      { name: "link", type: "symlink", linkname: "locked/data", mode: 0o777, mtime: when },
    ]);
    expect((await files.upload("/workspace/tree", tar)).body).toEqual({ files: 2, bytes: 1_000_000 });
    const back = await readTar((await files.download("/workspace/tree")).body!);
    const facts = back.map(({ name, mode, mtime }) => [name, mode, mtime?.getTime()]);
    expect(facts).toEqual([
      ["link", 0o777, when.getTime()],
      ["locked/", 0o555, when.getTime()],
      ["locked/data", 0o400, when.getTime()],
    ]);
    expect(back[2]?.content.equals(content)).toBe(true);
    const out = await files.upload("/workspace/tree", await tarOf([{ name: "link/x", content: "x" }]));
    expect([out.status, out.body.error.code]).toEqual([400, "bad_request"]);
    const denied = await files.write("/etc/passwd", "x");
    expect(denied.status).toBe(403);
  });

  test("a process crosses handoffs: no byte is lost or repeated, and a key runs once", async () => {
    const store = await temporaryFolder();
    const [a, b] = [await ServerProcess.start({ store }), await ServerProcess.start({ store })];
    const here = await SandboxClient.create(httpOf(a));
    const there = new SandboxClient(httpOf(b), here.id);
    const once = { shell: "echo x >> /workspace/runs; cat /workspace/runs", stdin: "" };
    const first = await here.exec(once, KEY);
    const { id } = await here.spawn({ language: "python", code: TICKING });
    const detached = await here.spawn({ shell: "read x; head -c 3000000 /dev/zero", detach: true });
    const seen: Buffer[] = [];
    let offset = 0;
    let box = here;
    for (let move = 0; move < 3; move += 1) {
      const socket = new ProcessSocket(`${box.url}/processes/${id}/attach?offset=${offset}`, {
        acknowledge: move !== 1,
        deadlineMs: DEADLINE_MS,
      });
      await socket.when(() => socket.length > 1000, "ticks");
      box = box === here ? there : here;
      const moved = await box.call("POST", "/resume");
      expect([moved.status, moved.body]).toEqual([200, expect.anything()]);
      const moving = await socket.event("moving");
      expect([moving.offset, await socket.closed, socket.gapBytes]).toEqual([socket.offset, 1012, 0]);
      seen.push(...socket.received);
      offset = socket.offset ?? 0;
    }
    const ticks = Buffer.concat(seen).toString("utf8").split("\n").slice(0, -1);
    expect(ticks).toEqual(ticks.map((_, index) => `tick ${index + 1}`));
    expect(await box.exec(once, KEY)).toMatchObject({ process_id: first.process_id, stdout: "x\n" });
    await box.stdin(detached.id, "\n");
    await eventually("it is read along", async () => (await box.process(detached.id)).exit_code === 0, DEADLINE_MS);
    const response = lines(await box.stream({ shell: "echo streamed" }));
    expect(text(await Array.fromAsync(response))).toBe("streamed\n");
  });
});
