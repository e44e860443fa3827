import type { FileEntry } from "@sandboxer/client";

/** Unsaved text: it is restored when the user returns to the file. */
export interface Draft {
  readonly text: string;
  /** The file as it was when the text was read. */
  readonly base: FileEntry;
}

const drafts = new Map<string, Draft>();
const keyOf = (sandboxId: string, path: string): string => `${sandboxId}:${path}`;

export function draftOf(sandboxId: string, path: string): Draft | undefined {
  return drafts.get(keyOf(sandboxId, path));
}

export function keepDraft(sandboxId: string, path: string, draft: Draft): void {
  drafts.set(keyOf(sandboxId, path), draft);
  guard();
}

export function dropDraft(sandboxId: string, path: string): void {
  drafts.delete(keyOf(sandboxId, path));
  guard();
}

/** Moves the draft of a renamed file. */
export function moveDraft(sandboxId: string, from: string, to: string): void {
  const draft = draftOf(sandboxId, from);
  if (draft === undefined) return;
  keepDraft(sandboxId, to, draft);
  dropDraft(sandboxId, from);
}

const ask = (event: Event): void => event.preventDefault();

/** The browser asks before the page with unsaved drafts is closed. */
function guard(): void {
  if (drafts.size > 0) addEventListener("beforeunload", ask);
  else removeEventListener("beforeunload", ask);
}
