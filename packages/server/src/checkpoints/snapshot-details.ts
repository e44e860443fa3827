import type { SnapshotPayload } from "../backends/backend.ts";

/** The plain words among what a backend says of a state: where it keeps it, how large it is there. */
export function detailsOf({ requirements }: SnapshotPayload): Record<string, string> {
  const { record } = requirements;
  const words = { ...requirements, ...(typeof record === "object" ? record : {}) };
  return Object.fromEntries(Object.entries(words).filter((entry): entry is [string, string] => isWord(entry[1])));
}

function isWord(value: unknown): boolean {
  return typeof value === "string" && value.length <= 1024;
}
