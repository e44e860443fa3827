import { expect, test } from "vitest";
import { type ContractContext, newRequest } from "./context.ts";
import { bash, errorCode, eventually, run, start } from "./programs.ts";

export function lifeContract(context: ContractContext): void {
  test("the backend says how it is", async () => {
    const health = await context.backend.probe();
    expect(health.ok).toBe(true);
    expect(health.summary).not.toBe("");
  });

  test("two sandboxes know nothing of each other", async () => {
    const [first, second] = await Promise.all([context.acquire(), context.acquire()]);
    await run(first, bash("echo secret > /workspace/secret; echo secret > /tmp/secret"));
    await start(first, bash("sleep 4222"));
    for (const path of ["/workspace/secret", "/tmp/secret"]) {
      expect(await errorCode(second.files.stat(path))).toBe("file_not_found");
    }
    expect((await second.processTable()).some(({ command }) => command.includes("4222"))).toBe(false);
    expect(await second.processes()).toEqual([]);
    await first.destroy();
    await second.ping();
  });

  test("a sandbox that was destroyed is over for everyone", async () => {
    const handle = await context.acquire();
    const process = await start(handle, bash("echo one; sleep 300"));
    const reading = Array.fromAsync(process.output());
    reading.catch(() => undefined);
    await Promise.all([handle.destroy(), handle.destroy()]);
    await handle.destroy();
    expect(await handle.ended).toMatchObject({ reason: "destroyed" });
    expect(await errorCode(process.exited)).toBe("sandbox_failed");
    expect(await errorCode(reading)).toBe("sandbox_failed");
    const codes = await Promise.all([
      errorCode(handle.exec({ key: "late", argv: bash("echo") })),
      errorCode(handle.ping()),
      errorCode(handle.processes()),
      errorCode(handle.files.stat("/workspace")),
      errorCode(process.writeStdin(Buffer.from("x"))),
    ]);
    expect(new Set(codes)).toEqual(new Set(["sandbox_failed"]));
  });

  test("an acquisition that is called off leaves nothing", async () => {
    const controller = new AbortController();
    controller.abort(new Error("called off"));
    await expect(context.backend.acquire(newRequest(), { signal: controller.signal })).rejects.toThrow();
  });

  test("a sandbox with a network is refused where there is none", async ({ skip }) => {
    skip(context.backend.capabilities.network, "the backend has a network");
    expect(await errorCode(context.acquire({ network: "sandbox" }))).toBe("not_supported");
  });

  test("stats are numbers, and what was never there is not resumed", async () => {
    const handle = await context.shared();
    for (const value of Object.values(await handle.stats())) expect(value).toBeGreaterThanOrEqual(0);
    expect(await context.backend.tryResume(newRequest())).toBeUndefined();
  });

  test("a backend that is closed ends its sandboxes", async () => {
    const backend = await context.openAnother();
    const handle = await context.acquire({}, backend);
    let over = false;
    void handle.ended.then(() => (over = true));
    await backend.close();
    await eventually(() => over, "the end of the sandbox");
    expect(await errorCode(handle.ping())).toBe("sandbox_failed");
  });
}
