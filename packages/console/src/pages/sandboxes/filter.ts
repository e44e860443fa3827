import type { SandboxRecord } from "@sandboxer/client";
import { stateWord } from "@sandboxer/protocol/state-word";
import { sandboxBadges, type Badge } from "../../format/badges.ts";
import { damagedSandboxes } from "../../live/damage.ts";

/** The filter of the list. It is in the URL, so that a link shows the same. */
export interface Filter {
  readonly text: string;
  readonly state: string;
  readonly backend: string;
  /** `KEY=VALUE`, or a key alone for any value. */
  readonly label: string;
  /** The words of a badge. */
  readonly badge: string;
}

export function filterOf(query: URLSearchParams): Filter {
  const part = (name: string): string => query.get(name) ?? "";
  const [state, backend] = [part("state"), part("backend")];
  return { text: part("q"), state, backend, label: part("label"), badge: part("badge") };
}

export function isFiltered(filter: Filter): boolean {
  return Object.values(filter).some((part) => part !== "");
}

/** All words must occur in its names. */
export function matches(record: SandboxRecord, { text, state, backend, label, badge }: Filter): boolean {
  if (state !== "" && shownState(record) !== stateWord(state)) return false;
  if (backend !== "" && record.backend !== backend) return false;
  if (label !== "" && !hasLabel(record, label)) return false;
  if (badge !== "" && !badgeTexts(record).includes(badge)) return false;
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0) return true;
  const names = namesOf(record).toLowerCase();
  return words.every((word) => names.includes(word));
}

/** A frozen sandbox runs, but frozen is what matters. */
export function shownState({ state, frozen }: Pick<SandboxRecord, "state" | "frozen">): string {
  return frozen ? "frozen" : stateWord(state);
}

/** All values with their counts, most frequent first. */
export function choices(
  records: Iterable<SandboxRecord>,
  valuesOf: (record: SandboxRecord) => readonly string[],
): [string, number][] {
  const counts = new Map<string, number>();
  for (const record of records) {
    for (const value of valuesOf(record)) counts.set(value, (counts.get(value) ?? 0) + 1);
  }
  return [...counts].toSorted(([a, x], [b, y]) => y - x || a.localeCompare(b));
}

export function badgesOf(record: SandboxRecord): readonly Badge[] {
  return sandboxBadges(record, damagedSandboxes.value.get(record.id));
}

export function badgeTexts(record: SandboxRecord): string[] {
  return badgesOf(record).map(({ text }) => text);
}

export function labelTexts({ labels }: SandboxRecord): string[] {
  return Object.entries(labels).map(([key, value]) => `${key}=${value}`);
}

function hasLabel({ labels }: SandboxRecord, wanted: string): boolean {
  const at = wanted.indexOf("=");
  if (at === -1) return Object.hasOwn(labels, wanted);
  const key = wanted.slice(0, at);
  return Object.hasOwn(labels, key) && labels[key] === wanted.slice(at + 1);
}

function namesOf(record: SandboxRecord): string {
  const { name, id, key, profile, backend, image } = record;
  return [name, id, key, profile, backend, image, ...labelTexts(record)].filter(Boolean).join("\n");
}
