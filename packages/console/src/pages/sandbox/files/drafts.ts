import type { FileEntry } from "@sandboxer/client";

/** What was written and is not saved yet: it is there again when the person comes back to the file. */
export interface Draft {
  readonly text: string;
  /** The file as it was when the text was read from it. */
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

/** A file that has another name now has its draft there. */
export function moveDraft(sandboxId: string, from: string, to: string): void {
  const draft = draftOf(sandboxId, from);
  if (draft === undefined) return;
  keepDraft(sandboxId, to, draft);
  dropDraft(sandboxId, from);
}

const ask = (event: Event): void => event.preventDefault();

/** The browser asks before the page goes that holds them. */
function guard(): void {
  if (drafts.size > 0) addEventListener("beforeunload", ask);
  else removeEventListener("beforeunload", ask);
}
