import type { Contest } from "../result.ts";

interface Reason {
  readonly id: RegExp;
  readonly against?: RegExp;
  readonly why: string;
}

/** The first that fits counts. */
const REASONS: readonly Reason[] = [
  {
    id: /^(create|first-output|peer-run)/,
    against: /runc|podman/,
    why: "runc starts a process of the host's kernel; gVisor starts a kernel of its own for each sandbox. That is what isolates it",
  },
  {
    id: /^(create|first-output|peer-run)/,
    why: "the server starts the agent, waits for its first word, and starts the program through it as a second process; raw runsc starts the program itself",
  },
  {
    id: /^(exec|peer-exec)/,
    against: /runc|podman/,
    why: "starting a program inside gVisor takes its kernel longer than the host's takes",
  },
  { id: /^(exec|peer-exec)/, why: "a program's start inside gVisor is most of it, and the same for both" },
  {
    id: /^output/,
    why: "each byte goes through the agent's log, a frame, JSON and a WebSocket, and is confirmed by the client, so that none is lost; raw runsc writes into a pipe",
  },
  {
    id: /^(checkpoint|peer-save)/,
    why: "every block is hashed, compressed, written durably and read back before it is acknowledged; runsc alone does none of it",
  },
  {
    id: /^(restore|peer-restore)/,
    why: "every block is read from the store, unpacked and verified before the engine may have it; a fresh agent generation is set (hostname, clock, randomness)",
  },
  {
    id: /^peer-commit/,
    why: "the files are saved with what they need to be restored on another machine, durably in the store; a commit leaves a layer in the engine's own folder, not synced",
  },
  {
    id: /^peer-from-commit/,
    why: "the files come from the store, verified, into a new sandbox; Docker mounts the layer that it has",
  },
  {
    id: /^(handoff|gap)/,
    why: "the bytes go through the store, hashed and synced, and the owner hears of the request after half a second on average; raw runsc copies once, on one disk, and nobody decides who owns it",
  },
  {
    id: /^(memory|density|idle)/,
    why: "the agent beside the program, and the server's own share for each sandbox",
  },
];

/** Why the first side of a contest is worse than another. */
export function whyItLoses({ id }: Contest, against: string): string {
  const found = REASONS.find((reason) => reason.id.test(id) && (reason.against?.test(against) ?? true));
  return found?.why ?? "not known";
}
