/** The states of a sandbox on one server. Only the manager changes the state, and only along this table. */
export const TRANSITIONS = {
  creating: ["running", "gone"],
  restoring: ["running", "gone"],
  running: ["saving", "destroying", "gone"],
  /** A full save is in progress; afterwards the sandbox has ended, or runs again. */
  saving: ["running", "destroying", "gone"],
  destroying: ["gone"],
  /** This server has no copy any more. The stored state is separate. */
  gone: [],
} as const satisfies Record<string, readonly string[]>;

export type SandboxState = keyof typeof TRANSITIONS;

export function canMove(from: SandboxState, to: SandboxState): boolean {
  return (TRANSITIONS[from] as readonly SandboxState[]).includes(to);
}
