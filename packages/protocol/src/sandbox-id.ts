const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

/** Ids are UUIDs in lower case; anything else names no sandbox. */
export function isSandboxId(text: string): boolean {
  return UUID.test(text);
}
