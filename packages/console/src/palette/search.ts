import type { Command } from "./commands.ts";

const SHOWN = 50;

/** The commands whose text contains the typed letters in order, the closest first. */
export function search(commands: readonly Command[], typed: string): readonly Command[] {
  const wanted = typed.toLowerCase().replaceAll(/\s+/g, "");
  if (wanted === "") return commands.slice(0, SHOWN);
  const rated = commands.flatMap((command) => {
    const rate = Math.min(distance(command.text, wanted), distance(command.more ?? "", wanted) + 20);
    return Number.isFinite(rate) ? [{ command, rate }] : [];
  });
  return rated
    .toSorted((a, b) => a.rate - b.rate)
    .slice(0, SHOWN)
    .map(({ command }) => command);
}

/** How far apart the letters are in a text, and how far from its start; infinite when one of them is missing. */
export function distance(text: string, wanted: string): number {
  const lower = text.toLowerCase();
  let at = -1;
  let gaps = 0;
  for (const letter of wanted) {
    const next = lower.indexOf(letter, at + 1);
    if (next === -1) return Number.POSITIVE_INFINITY;
    gaps += at === -1 ? next / 4 : next - at - 1;
    at = next;
  }
  return gaps;
}
