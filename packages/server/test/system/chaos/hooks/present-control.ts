import { CONTROL_FILE, readControl, UNDISTURBED, type Control } from "./control.ts";

/** The clock is asked very often. */
const FRESH_MS = 20;

let control: Control = UNDISTURBED;
let readMs = -Infinity;

/** The runner's current commands. */
export function presentControl(): Control {
  const nowMs = performance.now();
  if (nowMs - readMs > FRESH_MS) {
    control = readControl(process.env[CONTROL_FILE] ?? "");
    readMs = nowMs;
  }
  return control;
}
