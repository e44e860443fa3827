import { signal } from "@preact/signals";

/** The token of a sandbox that was created on this page. The server returns it once, and it is kept in memory only. */
export const createdToken = signal<{ readonly sandboxId: string; readonly token: string } | undefined>(undefined);

export function rememberToken(sandboxId: string, token: string): void {
  createdToken.value = { sandboxId, token };
}
