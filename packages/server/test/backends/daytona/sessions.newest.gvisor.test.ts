import { tmpdir } from "node:os";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { SandboxHandle } from "../../../src/backends/backend.ts";
import type { DaytonaBackend } from "../../../src/backends/daytona/daytona-backend.ts";
import { describeGvisor } from "../gvisor/support/describe-gvisor.ts";
import { bash, countAbove, counter, eventually, finish, Follower, readText, run, start } from "../contract/programs.ts";
import { openGvisorServer } from "./gvisor-lab.ts";
import { requestFor } from "./requests.ts";

describeGvisor("programs at Daytona", (engine) => {
  let lab: Awaited<ReturnType<typeof openGvisorServer>>;
  let backend: DaytonaBackend;
  let handle: SandboxHandle;
  beforeAll(async () => {
    lab = await openGvisorServer(engine);
    backend = lab.open();
    handle = await backend.acquire(requestFor());
  });
  afterAll(async () => {
    await backend.close();
    await lab.close();
  });

  test("a cut stream is resumed without a gap or a repetition", async () => {
    const process = await start(handle, bash("for i in $(seq 1 40); do echo line $i; sleep 0.05; done"));
    const output = new Follower(process);
    await output.until("line 5\n");
    expect(lab.server.cutStreams()).toBeGreaterThan(0);
    await output.until("line 25\n");
    lab.server.cutStreams();
    await output.ended;
    expect(output.text).toBe(Array.from({ length: 40 }, (_, index) => `line ${index + 1}\n`).join(""));
    expect((await process.exited).code).toBe(0);
  });

  test("another server resumes running processes: their output from the first byte, their stdin, their key", async () => {
    const code = 'echo "before"; read x; echo "after $x"; exit 5';
    const process = await start(handle, bash(code), { key: "my key/ü" });
    await new Follower(process).until("before");
    const other = lab.open();
    const again = await other.tryResume(requestFor());
    const adopted = (await again?.processes())?.find(({ key }) => key === "my key/ü");
    if (again === undefined || adopted === undefined) throw new Error("The process was not adopted.");
    expect(adopted.pid).toBe(process.pid);
    expect((await again.exec({ key: "my key/ü", argv: bash(code) })).pid).toBe(process.pid);
    await adopted.writeStdin(Buffer.from("me\n"));
    const { stdout, exit } = await finish(adopted);
    expect(stdout).toBe("before\nafter me\n");
    expect(exit.code).toBe(5);
  });

  test("a background process may keep writing after its parent was read to the end", async () => {
    const path = "/workspace/background";
    const loop = `i=0; while true; do i=$((i+1)); echo noise; echo "$i" > ${path}; sleep 0.05; done`;
    const { exit, process, stdout } = await run(handle, bash(`(${loop}) & echo $!`));
    expect(exit.code).toBe(0);
    await process.release();
    await countAbove(handle, path, (await countAbove(handle, path, 0)) + 5);
    await run(handle, bash(`kill -9 ${/\d+/.exec(stdout)?.[0] ?? ""}`));
  });

  test("a sandbox that is saved to be paused is frozen until it is resumed after all", async () => {
    const path = "/workspace/still";
    const process = await start(handle, counter(path));
    await countAbove(handle, path, 2);
    const payload = await handle.snapshot(tmpdir(), { mode: "filesystem", leaveRunning: false });
    await handle.thaw();
    const restored = await backend.acquireFromSnapshot(requestFor({ key: "restored" }), payload);
    const saved = Number(await readText(restored, path));
    expect(saved).toBeGreaterThan(0);
    await countAbove(handle, path, saved);
    await process.signal(9, "group");
    await process.exited;
    await restored.destroy();
  });

  test("nothing of ours is left inside after programs were released", async () => {
    const { process } = await run(handle, bash("echo done"));
    await process.release();
    await eventually(async () => {
      const { stdout, process: looking } = await run(handle, bash("ls -d /tmp/.sandboxer-* | wc -l"));
      await looking.release();
      // The folder of this very command.
      return stdout.trim() === "1";
    }, "the folders of programs gone");
  });
});
