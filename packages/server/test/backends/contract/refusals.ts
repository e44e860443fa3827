import { expect, test } from "vitest";
import type { ContractContext } from "./context.ts";
import { bash, errorCode, start } from "./programs.ts";

export function refusalContract(context: ContractContext): void {
  test("unsupported calls are refused as not_supported, and the sandbox keeps running", async () => {
    const { files, pty, connect, network, snapshot } = context.backend.capabilities;
    const handle = await context.shared();
    const into = await context.folder();
    const save = (mode: "full" | "filesystem") => () => handle.snapshot(into, { mode, leaveRunning: true });
    const calls: readonly [what: string, can: boolean, call: () => Promise<unknown>][] = [
      ["commands", context.runsCommands, () => start(handle, bash("echo"))],
      ["terminals", pty, () => start(handle, bash("echo"), { pty: { rows: 24, columns: 80 } })],
      ["files", files, () => handle.files.stat("/")],
      ["connections", connect, () => handle.connect(7001)],
      ["full snapshots", snapshot === "full", save("full")],
      ["snapshots", snapshot !== "none", save("filesystem")],
      ["a network", network, () => context.acquire({ network: "open" })],
    ];
    const refused = calls.filter(([, can]) => !can);
    const answers = await Promise.all(refused.map(async ([what, , call]) => [what, await errorCode(call())]));
    expect(answers).toEqual(refused.map(([what]) => [what, "not_supported"]));
    await handle.ping();
  });
}
