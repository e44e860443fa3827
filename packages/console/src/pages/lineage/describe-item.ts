import { stateWord } from "@sandboxer/protocol/state-word";
import { sandboxBadges, snapshotBadges, type Badge } from "../../format/badges.ts";
import { formatBytes } from "../../format/bytes.ts";
import { formatSeconds } from "../../format/duration.ts";
import { shortId } from "../../format/names.ts";
import { damagedSandboxes } from "../../live/damage.ts";
import type { LineageItem } from "./forest.ts";

export function itemTitle({ record }: LineageItem): string {
  return record.name ?? shortId(record.id);
}

/** Its kind and state, in a few words. */
export function itemFacts(item: LineageItem, nowMs: number): string {
  // One unit is enough here, and changes rarely.
  const [age] = formatSeconds((nowMs - Date.parse(item.record.createdAt)) / 1_000).split(" ");
  if (item.kind === "sandbox") return `${itemState(item)} · ${item.record.backend} · ${age}`;
  const { mode, sizeBytes, backend } = item.record;
  return `${mode} · ${formatBytes(sizeBytes)} · ${backend} · ${age}`;
}

export function itemState(item: LineageItem): string {
  return item.kind === "sandbox" && item.record.frozen ? "frozen" : stateWord(item.record.state);
}

/** Badges of its saved state. */
export function itemBadges(item: LineageItem): readonly Badge[] {
  if (item.kind === "snapshot") return snapshotBadges(item.record);
  return sandboxBadges(item.record, damagedSandboxes.value.get(item.record.id));
}

/** Whether it is running now. */
export function isLive(item: LineageItem): boolean {
  return item.kind === "sandbox" && item.record.state === "running";
}

const letters = new Intl.Segmenter();

/** Shortens text for its place, counted in displayed characters. */
export function cutText(text: string, most: number): string {
  if (text.length <= most) return text;
  const shown = Array.from(letters.segment(text.slice(0, most * 10)), ({ segment }) => segment);
  return shown.length <= most ? text : `${shown.slice(0, most - 1).join("")}…`;
}
