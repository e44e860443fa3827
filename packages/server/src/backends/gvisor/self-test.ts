import { randomUUID } from "node:crypto";
import { mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { dialectOf } from "./control/known-builds.ts";
import type { ControlWay } from "./engine.ts";
import { GvisorBackend } from "./gvisor-backend.ts";
import { RunDirectory } from "./run-directory.ts";
import type { Platform } from "./runsc.ts";

export interface SelfTestOptions {
  readonly runscPath: string;
  readonly version: string;
  readonly platform: Platform;
  readonly agentPath: string;
  /** Scratch space; leftovers of the test are removed. */
  readonly directory: string;
  readonly timeoutMs: number;
}

export type SelfTestResult =
  | { readonly ok: true; readonly elapsedMs: number; readonly control: ControlWay }
  | { readonly ok: false; readonly reason: string };

/**
 * Runs, pauses, checkpoints, restores and pings a real sandbox: the only proof that a platform works on this machine.
 * If the engine is one whose messages are known, then by messages; if one is not taken, again by commands.
 */
export async function selfTest(options: SelfTestOptions): Promise<SelfTestResult> {
  const byMessages = dialectOf(options.version) === undefined ? undefined : await trial(options, "messages");
  return byMessages?.ok === true ? byMessages : trial(options, "commands");
}

async function trial(options: SelfTestOptions, control: ControlWay): Promise<SelfTestResult> {
  const started = performance.now();
  const directory = join(options.directory, `self-test-${randomUUID()}`);
  await mkdir(directory, { recursive: true });
  const signal = AbortSignal.timeout(options.timeoutMs);
  const runDirectory = await RunDirectory.open(join(directory, "run"), randomUUID());
  const mib = 1024 * 1024;
  const backend = await GvisorBackend.open({
    engine: { path: options.runscPath, version: options.version, sha256: "", control },
    onlyMessages: true,
    platform: options.platform,
    agentPath: options.agentPath,
    runDirectory,
    cacheDirectory: directory,
    defaultImage: "host",
    imageDirectories: [],
    defaultResources: { memoryBytes: 256 * mib, processes: 64, diskBytes: 256 * mib, fileBytes: 256 * mib },
    heartbeatMs: 0,
  });
  try {
    const spec = { env: {}, resources: {}, network: "none" as const };
    const request = { sandboxId: randomUUID(), spec };
    const first = await backend.acquire(request, { signal });
    await first.freeze();
    await first.thaw();
    const image = join(directory, "image");
    await mkdir(image);
    const snapshot = await first.snapshot(image, { mode: "full", leaveRunning: false, signal });
    await first.destroy();
    const second = await backend.acquireFromSnapshot(request, snapshot, { signal });
    await second.untilLoaded({ signal, timeoutMs: options.timeoutMs });
    await second.ping({ signal });
    return { ok: true, elapsedMs: Math.round(performance.now() - started), control };
  } catch (error) {
    return { ok: false, reason: (error as Error).message };
  } finally {
    await backend.close().catch(() => {});
    await runDirectory.close();
    await rm(directory, { recursive: true, force: true });
  }
}
