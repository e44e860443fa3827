import type { Io } from "../io.ts";

const CODES = { red: 31, green: 32, yellow: 33, blue: 34, dim: 2, bold: 1 } as const;
export type Colour = keyof typeof CODES;
export type Paint = (text: string, colour: Colour) => string;

/** Colours only in a terminal, and not with NO_COLOR (no-color.org). */
export function painter(io: Pick<Io, "stdoutIsTerminal" | "env">): Paint {
  const on = io.stdoutIsTerminal && !io.env["NO_COLOR"] && io.env["TERM"] !== "dumb";
  return on ? (text, colour) => `\u001B[${CODES[colour]}m${text}\u001B[0m` : (text) => text;
}

const STATE_COLOURS: Readonly<Record<string, Colour>> = {
  running: "green",
  ready: "green",
  done: "green",
  paused: "blue",
  failed: "red",
  damaged: "red",
  missing: "red",
  unreachable: "red",
  destroyed: "dim",
  exited: "dim",
};

/** Green is running, blue paused, red broken, yellow changing. */
export function paintState(paint: Paint, state: string): string {
  return paint(state, STATE_COLOURS[state] ?? "yellow");
}
