import type { Contest } from "../result.ts";

interface Reason {
  readonly id: RegExp;
  readonly against?: RegExp;
  readonly why: string;
}

/** The first that fits counts. */
const REASONS: readonly Reason[] = [
  {
    id: /^image-pull/,
    why: "gVisor starts a kernel for the sandbox, which runc does not; the rest is download, unpacking and stacking",
  },
  {
    id: /^image-create/,
    why: "gVisor reads the image's files through its own process, like those of the host",
  },
  {
    id: /^(create|first-output|peer-run)/,
    against: /\(runc\)/,
    why: "runc starts a process on the host's kernel; gVisor starts a kernel for each sandbox, which isolates it",
  },
  {
    id: /^(create|first-output|peer-run)/,
    why: "the server starts the agent, waits until it answers, and starts the program through it as a second process; raw runsc starts the program itself",
  },
  {
    id: /^(exec|peer-exec)/,
    against: /\(runc\)/,
    why: "gVisor's kernel takes longer to start a program than the host's kernel",
  },
  {
    id: /^(exec|peer-exec)/,
    why: "most of the time is gVisor starting the program, which is the same for both; the ping row shows the round trip alone",
  },
  {
    id: /^proxy-/,
    why: "each byte goes through a socket inside, the agent, a frame and the server's own connection; a connection inside the sandbox has one socket",
  },
  {
    id: /^output/,
    why: "each byte goes through the agent's log, a frame, JSON and a WebSocket, and the client confirms it, so that none is lost; raw runsc writes into a pipe",
  },
  {
    id: /^(checkpoint|peer-save)/,
    why: "every block is hashed, compressed, written durably and read back before it is acknowledged; raw runsc does none of this",
  },
  {
    id: /^live-pause/,
    why: "the engine's own pause is the same for both, 15 ms before the first byte of memory; while the server works on the saved state, the program shares the processors with it. Files for memory are prepared from the second checkpoint in five minutes on",
  },
  {
    id: /^(restore|peer-restore)/,
    why: "every block is read from the store, unpacked and verified before the engine loads it; the agent gets a new hostname, clock and randomness",
  },
  {
    id: /^peer-commit/,
    why: "to find new files, the server compares the whole root filesystem with its base, folder by folder through the agent; then it hashes the files and writes them durably, for any machine. Docker's overlay knows which files are new, and a commit leaves them in the engine's own folder, not synced",
  },
  {
    id: /^peer-from-commit/,
    why: "the files are read from the store, verified, and written into a new sandbox through its agent; Docker and podman mount a layer that they already have",
  },
  {
    id: /^(handoff|gap)/,
    why: "the bytes go through the store, hashed and synced, and the owner notices the request after half a second on average; raw runsc copies once, on one disk, without deciding who owns the sandbox",
  },
  {
    id: /^preview/,
    why: "the request goes through the server, the agent's frames and a connection inside, each on the same processors as the program",
  },
  {
    id: /^second-time.*objects/,
    why: "one percent of the objects is spread over a fifth of the pages and nearly every block, so most blocks are encoded again; and the first checkpoint is fast, because objects compress to a tenth",
  },
  {
    id: /^second-time-at-hand/,
    why: "the engine writes all memory again at each checkpoint, and the server reads and compares all of it; only the stored bytes shrink with the change",
  },
  {
    id: /^second-time/,
    why: "the engine writes all memory again at each checkpoint, and an engine that writes it in large pieces waits for memory that its machine had returned to the host; the row with memory at hand excludes that",
  },
  {
    id: /^second-bytes/,
    why: "changed blocks are stored as differences, and changes by the engine and Python themselves count too",
  },
  {
    id: /^forks/,
    why: "differences between forks (the agent's generation, the engine's own state) are stored for each",
  },
  {
    id: /^(memory|density|idle)/,
    why: "the agent runs beside the program, and the server has a share for each sandbox",
  },
];

/** Why the first side of a contest is worse than another, or than its aim. */
export function whyItLoses({ id }: Contest, against: string): string {
  const found = REASONS.find((reason) => reason.id.test(id) && (reason.against?.test(against) ?? true));
  return found?.why ?? "unknown";
}
