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
    against: /\(runc\)/,
    why: "runc starts a process of the host's kernel; gVisor starts a kernel of its own for each sandbox. That is what isolates it",
  },
  {
    id: /^(create|first-output|peer-run)/,
    why: "the server starts the agent, waits for its first word, and starts the program through it as a second process; raw runsc starts the program itself",
  },
  {
    id: /^(exec|peer-exec)/,
    against: /\(runc\)/,
    why: "starting a program inside gVisor takes its kernel longer than the host's takes",
  },
  {
    id: /^(exec|peer-exec)/,
    why: "starting a program inside gVisor is most of it, and the same for both; the way there and back alone is the row of the ping",
  },
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
    why: "to find what is new, the whole root filesystem is compared with its base, folder by folder through the agent; then it is hashed and written durably, for any machine. An overlay knows what is new, and a commit leaves it in the engine's own folder, not synced",
  },
  {
    id: /^peer-from-commit/,
    why: "the files are read from the store, verified, and written into a new sandbox through its agent; Docker and podman mount the layer that they have",
  },
  {
    id: /^(handoff|gap)/,
    why: "the bytes go through the store, hashed and synced, and the owner hears of the request after half a second on average; raw runsc copies once, on one disk, and nobody decides who owns it",
  },
  {
    id: /^second-time.*objects/,
    why: "one percent of the objects lies on a fifth of the pages and in nearly every block, so most blocks are encoded again; and the first one is quick, because objects compress to a tenth",
  },
  {
    id: /^second-time-at-hand/,
    why: "the engine writes all of the memory anew at each checkpoint, and all of it is read and compared with the parent's; only what is stored shrinks with what changed",
  },
  {
    id: /^second-time/,
    why: "the engine writes all of the memory anew at each checkpoint, and an engine that writes it in large pieces waits for memory that its machine had given away: the row with memory at hand is without that",
  },
  {
    id: /^second-bytes/,
    why: "blocks with a change in them are stored as deltas, and what the engine and Python change by themselves counts too",
  },
  {
    id: /^forks/,
    why: "what differs between forks (the agent's generation, the engine's own state) is stored for each",
  },
  {
    id: /^(memory|density|idle)/,
    why: "the agent beside the program, and the server's own share for each sandbox",
  },
];

/** Why the first side of a contest is worse than another, or than its aim. */
export function whyItLoses({ id }: Contest, against: string): string {
  const found = REASONS.find((reason) => reason.id.test(id) && (reason.against?.test(against) ?? true));
  return found?.why ?? "not known";
}
