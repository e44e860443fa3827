import { expect, test } from "vitest";
import { type ContractContext, newRequest } from "./context.ts";
import { errorCode, eventually } from "./programs.ts";

export function lifeContract(context: ContractContext): void {
  test("the backend reports its health", async () => {
    const health = await context.backend.probe();
    expect(health.ok).toBe(true);
    expect(health.summary).not.toBe("");
  });

  test("a cancelled acquisition leaves nothing", async () => {
    const controller = new AbortController();
    controller.abort(new Error("called off"));
    await expect(context.backend.acquire(newRequest(), { signal: controller.signal })).rejects.toThrow();
  });

  test("stats are numbers, and a sandbox that never existed is not resumed", async () => {
    const handle = await context.shared();
    for (const value of Object.values(await handle.stats())) expect(value).toBeGreaterThanOrEqual(0);
    expect(await context.backend.tryResume(newRequest())).toBeUndefined();
  });

  test("closing a backend ends its sandboxes", async () => {
    const backend = await context.openAnother();
    const handle = await context.acquire({}, backend);
    let over = false;
    void handle.ended.then(() => (over = true));
    await backend.close();
    await eventually(() => over, "the end of the sandbox");
    expect(await errorCode(handle.ping())).toBe("sandbox_failed");
  });
}
