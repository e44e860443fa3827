const KEPT = "kept-sandbox";

/** Whether its provider keeps the sandbox. */
export function isKept(sandboxId: string): boolean {
  return sandboxId.startsWith(KEPT);
}

/** Every third sandbox is one that its provider keeps. */
export function kindOfNext(count: number): string {
  return count % 3 === 2 ? KEPT : "sandbox";
}
