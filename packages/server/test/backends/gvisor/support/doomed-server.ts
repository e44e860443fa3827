/**
 * A server process for tests that kill it: it creates, saves or restores sandboxes forever, and prints on stdout, as
 * JSON, what it is and each time when it begins.
 *
 * Arguments: the run folder, the cache folder, and `create`, `warm`, which creates and has others started ahead, `save`,
 * `save again`, for which files are prepared, `save files` and `save message`, which begin when the kernel has the files
 * of a checkpoint and before it has the message, and when it has both, `restore`, `network`, which creates with a network, or `doze`, which begins when its sandbox is dozing.
 */
import { randomUUID } from "node:crypto";
import { mkdir, rm } from "node:fs/promises";
import { Socket } from "node:net";
import { join } from "node:path";
import type { SandboxHandle } from "../../../../src/backends/backend.ts";
import { probeNetwork } from "../../../../src/backends/gvisor/network/network-support.ts";
import { RunDirectory } from "../../../../src/backends/gvisor/run-directory.ts";
import { newRequest } from "../../contract/context.ts";
import { bash, delay, eventually, run } from "../../contract/programs.ts";
import { testEngine } from "./engine.ts";
import { openGvisor } from "./open-backend.ts";
import { warmOptions } from "./warm-options.ts";

const [runParent = "", cacheDirectory = "", work = "create"] = process.argv.slice(2);
const engine = testEngine();
if ("missing" in engine) throw new Error(engine.missing);
const runDirectory = await RunDirectory.open(runParent, randomUUID());
const network = work === "network" ? await probeNetwork(engine.version, process.env["PATH"] ?? "") : undefined;
const support = network === undefined ? {} : { network };
const ahead = work === "warm" ? { warm: warmOptions() } : {};
const rest = { dozeAfterMs: work === "doze" ? 1 : 0 };
const { backend } = await openGvisor(engine, { runDirectory, cacheDirectory, ...support, ...ahead, ...rest });
const spec = { network: network === undefined ? ("none" as const) : ("open" as const) };
const say = (event: object): void => void process.stdout.write(`${JSON.stringify(event)}\n`);

const first = await backend.acquire(newRequest(spec));
// Large, so that a save and a restore take a while.
const saves = work.startsWith("save");
if (saves || work === "restore") await run(first, bash("head -c 30M /dev/urandom > /workspace/large"));
const save = async (handle: SandboxHandle) => {
  const into = join(runDirectory.workDirectory, randomUUID());
  await mkdir(into);
  return { into, snapshot: await handle.snapshot(into, { mode: "full", leaveRunning: true }) };
};
const saveOnce = async (): Promise<void> => rm((await save(first)).into, { recursive: true });
const saved = work === "restore" ? await save(first) : undefined;
if (work === "save again") for (let count = 0; count < 2; count++) await saveOnce();
say({ path: runDirectory.path, cgroupPath: runDirectory.cgroupPath, instanceId: runDirectory.instanceId });

if (work === "save files" || work === "save message") {
  const end = Reflect.get(Socket.prototype, "end") as (...given: unknown[]) => Socket;
  Socket.prototype.end = function (this: Socket, ...given: unknown[]) {
    const isCheckpoint = String(given[0]).includes("containerManager.Checkpoint");
    if (!isCheckpoint || work === "save message") end.apply(this, given);
    if (isCheckpoint) say({ event: "begin" });
    return this;
  };
  await saveOnce();
}
if (work === "doze") await eventually(() => first.dozing === true, "a doze");
for (;;) {
  say({ event: "begin" });
  if (saves) await saveOnce();
  else if (work === "doze") await delay(60_000);
  else if (saved === undefined) await (await backend.acquire(newRequest(spec))).destroy();
  else await (await backend.acquireFromSnapshot(newRequest(), saved.snapshot)).destroy();
}
