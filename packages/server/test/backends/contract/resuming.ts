import { randomUUID } from "node:crypto";
import { expect, test } from "vitest";
import type { AcquireRequest, SandboxIdentity } from "../../../src/backends/backend.ts";
import { type ContractContext, newRequest } from "./context.ts";
import { bash, readText, start } from "./programs.ts";

export function resumeContract(context: ContractContext): void {
  test("a stopped sandbox is resumed with its files, until it is deleted", async () => {
    const request = newRequest();
    const handle = context.keep(await context.backend.acquire(request));
    await handle.files.write("/workspace/kept", Buffer.from("kept"));
    await start(handle, bash("sleep 300"));
    await handle.stop();
    expect(await handle.ended).toMatchObject({ reason: "destroyed" });

    const resumed = context.keep((await context.backend.tryResume(request))!);
    expect(resumed.sandboxId).toBe(request.sandboxId);
    expect(await readText(resumed, "/workspace/kept")).toBe("kept");
    expect(await resumed.processes()).toEqual([]);
    await resumed.destroy();
    expect(await context.backend.tryResume(request)).toBeUndefined();
  });

  test("a running sandbox is found by its key", async () => {
    const request = keyed();
    const handle = context.keep(await context.backend.acquire(request));
    await handle.files.write("/workspace/kept", Buffer.from("kept"));
    const found = context.keep((await context.backend.tryResume(request))!);
    expect(await readText(found, "/workspace/kept")).toBe("kept");
    expect(found.sandboxId).toBe(request.sandboxId);
    await found.destroy();
  });

  test("another spec means another sandbox", async () => {
    const request = keyed();
    await context.keep(await context.backend.acquire(request)).stop();
    const other = { ...request, identity: { ...request.identity, specHash: "another" } };
    expect(await context.backend.tryResume(other)).toBeUndefined();
  });
}

function keyed(): AcquireRequest & { readonly identity: SandboxIdentity } {
  const identity = { key: randomUUID(), specHash: "one", owner: "the contract", idleTtlMs: 3_600_000 };
  return { ...newRequest(), identity };
}
