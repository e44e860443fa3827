import type { SandboxRecord } from "@sandboxer/client";

/** The display name. */
export function sandboxTitle({ name, id }: Pick<SandboxRecord, "name" | "id">): string {
  return name ?? shortId(id);
}

export function shortId(id: string): string {
  return id.length <= 12 ? id : id.slice(0, 8);
}

export function labelWords(labels: Readonly<Record<string, string>> = {}): string {
  const words = Object.entries(labels).map(([key, value]) => `${key}=${value}`);
  return words.length === 0 ? "none" : words.join(", ");
}
