import { createHash } from "node:crypto";

/**
 * The index of a store: empty blobs `index/{view}/{place}`, sometimes with a suffix, so that a list of names answers
 * which sandboxes or snapshots a view has. It only says where to look: heads and records are the truth.
 */
export const INDEX_FOLDER = "index";

const PLACE = /^(\d{13}-([0-9A-Za-z_-]+))(?:\.[0-9A-Za-z-]+)?$/;
const LATEST_MS = 9_999_999_999_999;
/** Comes after every suffix of a place, and before the next place. */
const AFTER_SUFFIXES = ".z";

/** Names in order are the order of lists: newest first, then the lowest ids. */
export function placeOf(createdAt: string, id: string): string {
  const ms = Math.min(Math.max(0, Date.parse(createdAt) || 0), LATEST_MS);
  return `${String(LATEST_MS - ms).padStart(13, "0")}-${id}`;
}

/** The position behind a place, whatever suffix it has. */
export function behind(place: string): string {
  return place + AFTER_SUFFIXES;
}

export function parseName(name: string): { readonly place: string; readonly id: string } | undefined {
  const [, place, id] = PLACE.exec(name) ?? [];
  return place === undefined || id === undefined ? undefined : { place, id };
}

export function entryKey(view: string, place: string, suffix?: string | number): string {
  return `${INDEX_FOLDER}/${view}/${place}${suffix === undefined ? "" : `.${suffix}`}`;
}

/** An entry without its suffix. Only suffixes begin with a dot. */
export function nameOf(key: string): string {
  return key.replace(/\..*$/, "");
}

/** A view for a text that anybody may choose. */
export function viewOf(kind: string, text: string): string {
  return `${kind}-${createHash("sha256").update(text).digest("hex").slice(0, 32)}`;
}

/** What is in `after` and not in `before`. */
export function without(after: readonly string[], before: readonly string[]): readonly string[] {
  const known = new Set(before);
  return after.filter((each) => !known.has(each));
}
