import { readFileSync, renameSync, writeFileSync } from "node:fs";

/** What a server's way to its store is like. `lost`: some replies never arrive. */
export type StoreMode = "ok" | "down" | "hang" | "slow" | "lost";

/** What the runner tells a server of a chaos run, through a file. */
export interface Control {
  readonly store: StoreMode;
  /** How far the server's wall clock is off. */
  readonly clockOffsetMs: number;
}

export const UNDISTURBED: Control = { store: "ok", clockOffsetMs: 0 };

/** The environment variable that names the file. Its neighbours say what the server tells the runner. */
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
