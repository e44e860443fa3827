import type { CommandFactory } from "./define-command.ts";

/** One command as the overview shows it. What it does is loaded when it is called. */
export interface RegistryEntry {
  readonly name: string;
  readonly aliases?: readonly string[];
  readonly group: string;
  readonly summary: string;
  /** Not in the overview: for programs of ours. */
  readonly hidden?: true;
  readonly load: () => Promise<CommandFactory>;
}

type Row = Omit<RegistryEntry, "group">;

const SANDBOXES: readonly Row[] = [
  {
    name: "create",
    summary: "Make a sandbox and print its id.",
    load: async () => (await import("./commands/create.ts")).createCommand,
  },
  {
    name: "run",
    summary: "Run a command in a new sandbox, then destroy it.",
    load: async () => (await import("./commands/run.ts")).runCommand,
  },
  {
    name: "ls",
    aliases: ["list"],
    summary: "List sandboxes.",
    load: async () => (await import("./commands/ls.ts")).lsCommand,
  },
  {
    name: "get",
    summary: "Show one sandbox.",
    load: async () => (await import("./commands/get.ts")).getCommand,
  },
  {
    name: "update",
    summary: "Change the name, the labels, the idle timeout or the promise of a sandbox.",
    load: async () => (await import("./commands/update.ts")).updateCommand,
  },
  {
    name: "rm",
    aliases: ["destroy"],
    summary: "Destroy sandboxes and everything that is stored of them.",
    load: async () => (await import("./commands/rm.ts")).rmCommand,
  },
  {
    name: "wait",
    summary: "Wait until a sandbox is in a state, or an operation has ended.",
    load: async () => (await import("./commands/wait.ts")).waitCommand,
  },
  {
    name: "extend-ttl",
    summary: "Let a sandbox live for this long from now.",
    load: async () => (await import("./commands/extend-ttl.ts")).extendTtlCommand,
  },
  {
    name: "expire",
    summary: "Say which sandboxes are past their time; destroy them with --apply.",
    load: async () => (await import("./commands/expire.ts")).expireCommand,
  },
  {
    name: "recreate",
    summary: "Make a sandbox anew from what it was made of, under the same id; its state is lost.",
    load: async () => (await import("./commands/recreate.ts")).recreateCommand,
  },
  {
    name: "reachability",
    summary: "Say whether a sandbox answers, and how fast.",
    load: async () => (await import("./commands/reachability.ts")).reachabilityCommand,
  },
  {
    name: "stats",
    summary: "Show the memory, disk and CPU that sandboxes use now.",
    load: async () => (await import("./commands/stats.ts")).statsCommand,
  },
];

const INSIDE: readonly Row[] = [
  {
    name: "exec",
    summary: "Run a command in a sandbox; its exit code becomes ours.",
    load: async () => (await import("./commands/exec.ts")).execCommand,
  },
  {
    name: "shell",
    summary: "Open a shell in a sandbox.",
    load: async () => (await import("./commands/shell.ts")).shellCommand,
  },
  {
    name: "attach",
    summary: "Wake a sandbox at this server, or take up one of its processes where you left it.",
    load: async () => (await import("./commands/attach.ts")).attachCommand,
  },
  {
    name: "ps",
    summary: "List the processes of a sandbox.",
    load: async () => (await import("./commands/ps.ts")).psCommand,
  },
  {
    name: "kill",
    summary: "Send a signal to a process of a sandbox.",
    load: async () => (await import("./commands/kill.ts")).killCommand,
  },
  {
    name: "logs",
    summary: "Print the output of a process, and follow it.",
    load: async () => (await import("./commands/logs.ts")).logsCommand,
  },
  {
    name: "cp",
    summary: "Copy files and folders between this machine and a sandbox.",
    load: async () => (await import("./commands/cp.ts")).cpCommand,
  },
  {
    name: "files",
    summary: "List, print, remove and make files in a sandbox.",
    load: async () => (await import("./commands/files.ts")).filesCommand,
  },
];

const SAVED: readonly Row[] = [
  {
    name: "snapshot",
    summary: "Capture a sandbox, which goes on.",
    load: async () => (await import("./commands/snapshot.ts")).snapshotCommand,
  },
  {
    name: "restore",
    summary: "Make a new sandbox with the state of a snapshot.",
    load: async () => (await import("./commands/restore.ts")).restoreCommand,
  },
  {
    name: "snapshots",
    summary: "List, show, name, pin, compare and remove snapshots.",
    load: async () => (await import("./commands/snapshots.ts")).snapshotsCommand,
  },
  {
    name: "prove",
    summary: "Restore a snapshot or a checkpoint once, out of reach, to prove that it can be.",
    load: async () => (await import("./commands/prove.ts")).proveCommand,
  },
  {
    name: "verify",
    summary: "Read every block of a snapshot or of a sandbox's checkpoints, and say what is damaged.",
    load: async () => (await import("./commands/verify.ts")).verifyCommand,
  },
  {
    name: "checkpoint",
    summary: "Save a sandbox and stop it, or let it go on; any server of the store can wake it.",
    load: async () => (await import("./commands/checkpoint.ts")).checkpointCommand,
  },
  {
    name: "fork",
    summary: "Make N new sandboxes of a running one, which goes on.",
    load: async () => (await import("./commands/fork.ts")).forkCommand,
  },
  {
    name: "move",
    summary: "Move the workspace of a sandbox to another backend.",
    load: async () => (await import("./commands/move.ts")).moveCommand,
  },
  {
    name: "rewind",
    summary: "Put a sandbox back to a snapshot, in place.",
    load: async () => (await import("./commands/rewind.ts")).rewindCommand,
  },
  {
    name: "handoff",
    summary: "Move a sandbox to another server of the store.",
    load: async () => (await import("./commands/handoff.ts")).handoffCommand,
  },
  {
    name: "tree",
    summary: "Draw which sandbox came from which snapshot.",
    load: async () => (await import("./commands/tree.ts")).treeCommand,
  },
  {
    name: "timeline",
    summary: "Tell what happened to a sandbox, in order.",
    load: async () => (await import("./commands/timeline.ts")).timelineCommand,
  },
];

const SERVERS: readonly Row[] = [
  {
    name: "serve",
    summary: "Set up what is missing, and serve sandboxes.",
    load: async () => (await import("./commands/serve.ts")).serveCommand,
  },
  {
    name: "setup",
    summary: "Fetch and build what the server needs, so that its first start is quick.",
    load: async () => (await import("./commands/setup.ts")).setupCommand,
  },
  {
    name: "doctor",
    summary: "Say what the server needs, what is here, and how to get what is not. Installs nothing.",
    load: async () => (await import("./commands/doctor.ts")).doctorCommand,
  },
  {
    name: "gc",
    summary: "Say what in a store nothing references any more, and remove it. Servers may go on meanwhile.",
    load: async () => (await import("./commands/gc.ts")).gcCommand,
  },
  {
    name: "scrub",
    summary: "Read everything that is saved in a store, and say what is damaged and whom that hurts.",
    load: async () => (await import("./commands/scrub.ts")).scrubCommand,
  },
  {
    name: "keys",
    summary: "Make, list and revoke the keys that clients of a server on this machine must send.",
    load: async () => (await import("./commands/keys.ts")).keysCommand,
  },
  {
    name: "config",
    summary: "Say which settings a server here would have. Keys and secrets are not shown.",
    load: async () => (await import("./commands/config.ts")).configCommand,
  },
  {
    name: "profiles",
    summary: "List, show and check the profiles that sandboxes can be made with.",
    load: async () => (await import("./commands/profiles.ts")).profilesCommand,
  },
  {
    name: "server",
    summary: "Show what a server is and has, and the sandboxes that it has started ahead of the need.",
    load: async () => (await import("./commands/server.ts")).serverCommand,
  },
  {
    name: "backends",
    summary: "Show what can make sandboxes, what each can do, and whether it works now.",
    load: async () => (await import("./commands/backends.ts")).backendsCommand,
  },
  {
    name: "instances",
    summary: "List every server on the store, and what each owns.",
    load: async () => (await import("./commands/instances.ts")).instancesCommand,
  },
  {
    name: "operations",
    summary: "List what is under way, and what was.",
    load: async () => (await import("./commands/operations.ts")).operationsCommand,
  },
  {
    name: "events",
    summary: "Print what happens on a server, and follow it.",
    load: async () => (await import("./commands/events.ts")).eventsCommand,
  },
];

const TOOL: readonly Row[] = [
  {
    name: "context",
    summary: "Choose between servers, and say where their keys are.",
    load: async () => (await import("./commands/context.ts")).contextCommand,
  },
  {
    name: "api",
    summary: "Send any request to the server's HTTP interface.",
    load: async () => (await import("./commands/api.ts")).apiCommand,
  },
  {
    name: "completion",
    summary: "Print the completion of a shell, with the names of sandboxes.",
    load: async () => (await import("./commands/completion.ts")).completionCommand,
  },
  {
    name: "version",
    summary: "Print the version of this program and of the server.",
    load: async () => (await import("./commands/version.ts")).versionCommand,
  },
  {
    name: "__complete",
    summary: "Print what may come next on a command line.",
    hidden: true,
    load: async () => (await import("./commands/complete.ts")).completeCommand,
  },
];

/** Every command, in the order of the overview. */
export const REGISTRY: readonly RegistryEntry[] = [
  ...inGroup("Sandboxes:", SANDBOXES),
  ...inGroup("Inside a sandbox:", INSIDE),
  ...inGroup("Saved state:", SAVED),
  ...inGroup("Servers:", SERVERS),
  ...inGroup("This program:", TOOL),
];

export function findEntry(name: string): RegistryEntry | undefined {
  return REGISTRY.find((entry) => entry.name === name || entry.aliases?.includes(name) === true);
}

function inGroup(group: string, rows: readonly Row[]): RegistryEntry[] {
  return rows.map((row) => ({ ...row, group }));
}
