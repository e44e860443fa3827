import type { SandboxRecord } from "@sandboxer/client";

/** The display name. */
export function sandboxTitle({ name, id }: Pick<SandboxRecord, "name" | "id">): string {
  return name ?? shortId(id);
}

export function shortId(id: string): string {
  return id.length <= 12 ? id : id.slice(0, 8);
}
