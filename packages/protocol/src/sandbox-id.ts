const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

/** Ids are lower-case UUIDs; anything else is not a sandbox id. */
export function isSandboxId(text: string): boolean {
  return UUID.test(text);
}

/** The id of a copy at its provider: the sandbox's own id for the first copy, `{sandbox_id}-N` for later ones. */
export function copyId(sandboxId: string, copy: number): string {
  return copy === 0 ? sandboxId : `${sandboxId}-${copy}`;
}

const COPY_ID = /^(.{36})(?:-([1-9]\d{0,8}))?$/;

/** Undefined if the text is not the id of a copy. */
export function parseCopyId(text: string): { readonly sandboxId: string; readonly copy: number } | undefined {
  const [, sandboxId = "", copy = "0"] = COPY_ID.exec(text) ?? [];
  return isSandboxId(sandboxId) ? { sandboxId, copy: Number(copy) } : undefined;
}
