import { readFileSync, renameSync, writeFileSync } from "node:fs";

/** The state of a server's connection to its store. `lost`: some replies never arrive. */
export type StoreMode = "ok" | "down" | "hang" | "slow" | "lost";

/** The runner's commands for a server of a chaos run, in a file. */
export interface Control {
  readonly store: StoreMode;
  /** How far the server's wall clock is off. */
  readonly clockOffsetMs: number;
}

export const UNDISTURBED: Control = { store: "ok", clockOffsetMs: 0 };

/** The environment variable that names the file. The files beside it have the server's reports to the runner. */
export const CONTROL_FILE = "SANDBOXER_CHAOS_CONTROL";
export const pidFileOf = (controlFile: string): string => `${controlFile}.pid`;
export const exitFileOf = (controlFile: string): string => `${controlFile}.exit`;
export const stallFileOf = (controlFile: string): string => `${controlFile}.stalls`;

/** In one step, so that no reader sees half of it. */
export function writeControl(path: string, control: Control): void {
  writeFileSync(`${path}.new`, JSON.stringify(control));
  renameSync(`${path}.new`, path);
}

export function readControl(path: string): Control {
  return JSON.parse(readFileSync(path, "utf8")) as Control;
}
