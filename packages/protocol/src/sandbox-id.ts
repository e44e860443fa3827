const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

/** Ids are UUIDs in lower case; anything else names no sandbox. */
export function isSandboxId(text: string): boolean {
  return UUID.test(text);
}

/** What a provider knows a copy of a sandbox by: the sandbox's id, and the number of any copy but the first. */
export function copyId(sandboxId: string, copy: number): string {
  return copy === 0 ? sandboxId : `${sandboxId}-${copy}`;
}

const COPY_ID = /^(.{36})(?:-([1-9]\d{0,8}))?$/;

/** Undefined for what is no such id. */
export function parseCopyId(text: string): { readonly sandboxId: string; readonly copy: number } | undefined {
  const [, sandboxId = "", copy = "0"] = COPY_ID.exec(text) ?? [];
  return isSandboxId(sandboxId) ? { sandboxId, copy: Number(copy) } : undefined;
}
