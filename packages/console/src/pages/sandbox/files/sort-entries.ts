import type { FileEntry } from "@sandboxer/client";

export const ORDERS = ["name", "size", "mode", "owner", "modified"] as const;
export type Order = (typeof ORDERS)[number];

export function asOrder(text: string | null): Order {
  return ORDERS.find((order) => order === text) ?? "name";
}

const names = new Intl.Collator(undefined, { numeric: true });
const byName = (left: FileEntry, right: FileEntry): number =>
  names.compare(left.name, right.name) || (left.name < right.name ? -1 : 1);

const COMPARE: Readonly<Record<Order, (left: FileEntry, right: FileEntry) => number>> = {
  name: byName,
  size: (left, right) => left.sizeBytes - right.sizeBytes,
  mode: (left, right) => (left.mode & 0o7777) - (right.mode & 0o7777),
  owner: (left, right) => left.uid - right.uid || left.gid - right.gid,
  modified: (left, right) => Date.parse(left.modifiedAt) - Date.parse(right.modifiedAt),
};

export interface Listing {
  readonly by: Order;
  readonly descending: boolean;
  /** Whether names that begin with a dot are listed. */
  readonly hidden: boolean;
}

/** The listed entries of a folder: folders first, whatever the order. */
export function sortEntries(entries: readonly FileEntry[], { by, descending, hidden }: Listing): readonly FileEntry[] {
  const sign = descending ? -1 : 1;
  const isFile = ({ kind }: FileEntry): number => (kind === "folder" ? 0 : 1);
  return entries
    .filter(({ name }) => hidden || !name.startsWith("."))
    .toSorted(
      (left, right) => isFile(left) - isFile(right) || sign * COMPARE[by](left, right) || sign * byName(left, right),
    );
}

const BITS = ["r", "w", "x"] as const;

/** As `ls` writes it: `rwxr-xr-x`. */
export function modeText(mode: number): string {
  const letters: string[] = Array.from({ length: 9 }, (_, index) =>
    (mode >> (8 - index)) & 1 ? (BITS[index % 3] ?? "") : "-",
  );
  for (const [bit, at, letter] of [
    [0o4000, 2, "s"],
    [0o2000, 5, "s"],
    [0o1000, 8, "t"],
  ] as const) {
    if (mode & bit) letters[at] = letters[at] === "x" ? letter : letter.toUpperCase();
  }
  return letters.join("");
}
