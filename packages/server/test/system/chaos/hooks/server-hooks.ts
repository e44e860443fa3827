/**
 * Given to a server's Node with `--import`: its wall clock and its way to the store are what the runner of a chaos run
 * says, and the runner learns the number of the process, its exit code, and when it did not get to run.
 */
import { appendFileSync, writeFileSync } from "node:fs";
import { replaceOpenStore } from "../../../store/replace-open-store.ts";
import { CONTROL_FILE, exitFileOf, pidFileOf, stallFileOf } from "./control.ts";
import { disturbWallClock } from "./wall-clock.ts";

/** A lease does not notice a shorter stop. */
const STALL_MS = 1_000;
const LOOK_MS = 100;

const controlFile = process.env[CONTROL_FILE] ?? "";
replaceOpenStore(new URL("./faulty-store.ts", import.meta.url).href);
disturbWallClock();
// npm, which may have started the server, loads this too.
if (/\/sandboxer(\.mjs)?$/.test(process.argv[1] ?? "")) {
  writeFileSync(pidFileOf(controlFile), String(process.pid));
  process.on("exit", (code) => writeFileSync(exitFileOf(controlFile), String(code)));
  watchForStalls();
}

/** On the machine's monotonic clock, which the runner has too. */
function watchForStalls(): void {
  const machineMs = (): number => Number(process.hrtime.bigint() / 1_000_000n);
  let lastMs = machineMs();
  setInterval(() => {
    const nowMs = machineMs();
    if (nowMs - lastMs > STALL_MS) appendFileSync(stallFileOf(controlFile), `${lastMs} ${nowMs}\n`);
    lastMs = nowMs;
  }, LOOK_MS).unref();
}
