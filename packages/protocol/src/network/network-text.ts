import { parseEntry } from "./entry.ts";

export const MAX_ENTRIES = 256;
export const MAX_ENTRY_LENGTH = 300;

/** The destinations that a sandbox may reach. */
export type NetworkPolicy = "none" | "open" | NetworkRules;

export interface NetworkRules {
  /** Absent: everything. */
  readonly allow?: readonly string[];
  /** Comes before `allow`. */
  readonly deny?: readonly string[];
}

/** As in requests, profiles and stored records. `sandbox` is an earlier name of `open`. */
export type NetworkSetting =
  | NetworkPolicy
  | "sandbox"
  | { readonly allow?: readonly string[] | undefined; readonly deny?: readonly string[] | undefined };

/** One spelling for each policy: lower case, without duplicates, `open` if nothing is ruled out. */
export function normalNetwork(setting: NetworkSetting): NetworkPolicy {
  if (setting === "none") return "none";
  if (setting === "open" || setting === "sandbox") return "open";
  const allow = setting.allow === undefined ? undefined : normalEntries(setting.allow);
  const deny = normalEntries(setting.deny ?? []);
  if (allow === undefined && deny.length === 0) return "open";
  return { ...(allow === undefined ? {} : { allow }), ...(deny.length === 0 ? {} : { deny }) };
}

/** As servers of earlier releases read it, and as hashes of specs have it. */
export function storedNetwork(policy: NetworkPolicy): NetworkSetting {
  return policy === "open" ? "sandbox" : policy;
}

/**
 * A policy as one word for command lines: `none`, `open`, or entries with commas between them. An entry with `!` is
 * denied; with only such entries, everything else is allowed. Undefined: it is invalid.
 */
export function parseNetworkText(text: string): NetworkPolicy | undefined {
  const words = text.split(",").map((word) => word.trim());
  const [first] = words;
  if (words.length === 1 && (first === "none" || first === "open" || first === "sandbox")) return normalNetwork(first);
  const isOpen = words.includes("open");
  const deny = words.filter((word) => word.startsWith("!")).map((word) => word.slice(1));
  const allow = words.filter((word) => !word.startsWith("!") && word !== "open");
  const entries = [...allow, ...deny];
  // `open` beside entries only makes sense with denied ones.
  if (entries.length > MAX_ENTRIES || (isOpen && allow.length > 0)) return undefined;
  if (!entries.every((entry) => entry.length <= MAX_ENTRY_LENGTH && parseEntry(entry) !== undefined)) return undefined;
  return normalNetwork({ ...(allow.length === 0 ? {} : { allow }), deny });
}

/** The inverse of {@link parseNetworkText}, for people. */
export function networkText(policy: NetworkPolicy): string {
  if (typeof policy === "string") return policy;
  const { allow = [], deny = [] } = policy;
  const shown = [...allow, ...deny.map((entry) => `!${entry}`)];
  // A list that allows nothing has no other spelling.
  return shown.length === 0 ? "nothing" : shown.join(",");
}

function normalEntries(entries: readonly string[]): string[] {
  return [...new Set(entries.map((entry) => parseEntry(entry)?.text ?? entry))];
}
