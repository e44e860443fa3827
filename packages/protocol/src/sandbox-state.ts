/**
 * The life of a sandbox on one server. Only the manager moves a sandbox from one state to another, and only along this
 * table.
 */
export const TRANSITIONS = {
  creating: ["running", "gone"],
  restoring: ["running", "gone"],
  running: ["saving", "destroying", "gone"],
  /** A full save is under way; it ends here, with the sandbox gone, or running again. */
  saving: ["running", "destroying", "gone"],
  destroying: ["gone"],
  /** This server has no copy any more. What is stored is another matter. */
  gone: [],
} as const satisfies Record<string, readonly string[]>;

export type SandboxState = keyof typeof TRANSITIONS;

export function canMove(from: SandboxState, to: SandboxState): boolean {
  return (TRANSITIONS[from] as readonly SandboxState[]).includes(to);
}
