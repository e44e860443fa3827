import type { CommandFactory } from "./define-command.ts";

/** One command of the overview. Its code is loaded when it is called. */
export interface RegistryEntry {
  readonly name: string;
  readonly aliases?: readonly string[];
  readonly group: string;
  readonly summary: string;
  /** Not in the overview: internal. */
  readonly hidden?: true;
  readonly load: () => Promise<CommandFactory>;
}

type Row = Omit<RegistryEntry, "group">;

const SANDBOXES: readonly Row[] = [
  {
    name: "create",
    summary: "Create a sandbox and print its id.",
    load: async () => (await import("./commands/create.ts")).createCommand,
  },
  {
    name: "run",
    summary: "Run a command in a new sandbox, then delete the sandbox.",
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
    summary: "Show a sandbox.",
    load: async () => (await import("./commands/get.ts")).getCommand,
  },
  {
    name: "update",
    summary: "Change the name, labels, lifetime, idle timeout, max loss or retention of a sandbox.",
    load: async () => (await import("./commands/update.ts")).updateCommand,
  },
  {
    name: "rm",
    aliases: ["destroy"],
    summary: "Delete sandboxes and their checkpoints. Snapshots are kept.",
    load: async () => (await import("./commands/rm.ts")).rmCommand,
  },
  {
    name: "wait",
    summary: "Wait until a sandbox reaches a state or an operation ends.",
    load: async () => (await import("./commands/wait.ts")).waitCommand,
  },
  {
    name: "extend-ttl",
    summary: "Set the remaining lifetime of a sandbox.",
    load: async () => (await import("./commands/extend-ttl.ts")).extendTtlCommand,
  },
  {
    name: "expire",
    summary: "List expired sandboxes; delete them with --apply.",
    load: async () => (await import("./commands/expire.ts")).expireCommand,
  },
  {
    name: "recreate",
    summary: "Create a sandbox again with the same id and settings. Its state is lost.",
    load: async () => (await import("./commands/recreate.ts")).recreateCommand,
  },
  {
    name: "reachability",
    summary: "Check whether a sandbox answers, and how fast.",
    load: async () => (await import("./commands/reachability.ts")).reachabilityCommand,
  },
  {
    name: "stats",
    summary: "Show the current memory, disk and CPU use of sandboxes.",
    load: async () => (await import("./commands/stats.ts")).statsCommand,
  },
];

const INSIDE: readonly Row[] = [
  {
    name: "exec",
    summary: "Run a command in a sandbox and exit with its exit code.",
    load: async () => (await import("./commands/exec.ts")).execCommand,
  },
  {
    name: "shell",
    summary: "Open a shell in a sandbox.",
    load: async () => (await import("./commands/shell.ts")).shellCommand,
  },
  {
    name: "python",
    summary: "Run Python in a sandbox whose variables stay: a prompt, a file or a line.",
    load: async () => (await import("./commands/python.ts")).pythonCommand,
  },
  {
    name: "attach",
    aliases: ["resume"],
    summary: "Resume a sandbox on this server, or attach to one of its processes.",
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
    summary: "Print or follow the output of a process.",
    load: async () => (await import("./commands/logs.ts")).logsCommand,
  },
  {
    name: "ports",
    summary: "List the ports on which programs in a sandbox listen.",
    load: async () => (await import("./commands/ports.ts")).portsCommand,
  },
  {
    name: "url",
    summary: "Print a URL that opens a port of a sandbox.",
    load: async () => (await import("./commands/url.ts")).urlCommand,
  },
  {
    name: "forward",
    summary: "Forward a local port to a port of a sandbox.",
    load: async () => (await import("./commands/forward.ts")).forwardCommand,
  },
  {
    name: "cp",
    summary: "Copy files and folders between this machine and a sandbox.",
    load: async () => (await import("./commands/cp.ts")).cpCommand,
  },
  {
    name: "files",
    summary: "List, print, create, move and delete files in a sandbox.",
    load: async () => (await import("./commands/files.ts")).filesCommand,
  },
];

const SAVED: readonly Row[] = [
  {
    name: "snapshot",
    summary: "Take a snapshot of a sandbox, which keeps running.",
    load: async () => (await import("./commands/snapshot.ts")).snapshotCommand,
  },
  {
    name: "restore",
    summary: "Create a new sandbox from a snapshot.",
    load: async () => (await import("./commands/restore.ts")).restoreCommand,
  },
  {
    name: "snapshots",
    summary: "List, show, name, pin, compare and delete snapshots.",
    load: async () => (await import("./commands/snapshots.ts")).snapshotsCommand,
  },
  {
    name: "prove",
    summary: "Test-restore a snapshot or checkpoint in isolation, then discard the copy.",
    load: async () => (await import("./commands/prove.ts")).proveCommand,
  },
  {
    name: "verify",
    summary: "Check every block of a snapshot or of a sandbox's checkpoints and list damage.",
    load: async () => (await import("./commands/verify.ts")).verifyCommand,
  },
  {
    name: "checkpoint",
    aliases: ["pause"],
    summary: "Pause a sandbox: save it and stop it. Any server of the store can resume it.",
    load: async () => (await import("./commands/checkpoint.ts")).checkpointCommand,
  },
  {
    name: "fork",
    summary: "Create N copies of a running sandbox, which keeps running.",
    load: async () => (await import("./commands/fork.ts")).forkCommand,
  },
  {
    name: "move",
    summary: "Move the workspace of a sandbox to another backend.",
    load: async () => (await import("./commands/move.ts")).moveCommand,
  },
  {
    name: "rewind",
    summary: "Return a sandbox to a snapshot, in place.",
    load: async () => (await import("./commands/rewind.ts")).rewindCommand,
  },
  {
    name: "compare",
    summary: "Compare sandboxes: files, processes, ports, usage, and a command's output.",
    load: async () => (await import("./commands/compare.ts")).compareCommand,
  },
  {
    name: "promote",
    summary: "Give a fork's state to the sandbox that it was forked from, and delete the fork.",
    load: async () => (await import("./commands/promote.ts")).promoteCommand,
  },
  {
    name: "handoff",
    summary: "Move a sandbox to another server of the store.",
    load: async () => (await import("./commands/handoff.ts")).handoffCommand,
  },
  {
    name: "tree",
    summary: "Show sandboxes and snapshots as a tree of their origins.",
    load: async () => (await import("./commands/tree.ts")).treeCommand,
  },
  {
    name: "timeline",
    aliases: ["history"],
    summary: "Show the history of a sandbox.",
    load: async () => (await import("./commands/timeline.ts")).timelineCommand,
  },
];

const SERVERS: readonly Row[] = [
  {
    name: "serve",
    summary: "Set up what is missing, and start a server.",
    load: async () => (await import("./commands/serve.ts")).serveCommand,
  },
  {
    name: "setup",
    summary: "Download and build what the server needs, so that it starts quickly.",
    load: async () => (await import("./commands/setup.ts")).setupCommand,
  },
  {
    name: "doctor",
    summary: "Check what the server needs and how to install what is missing. Installs nothing.",
    load: async () => (await import("./commands/doctor.ts")).doctorCommand,
  },
  {
    name: "gc",
    summary: "List unreferenced data in a store, and remove it with --apply. Servers can keep running.",
    load: async () => (await import("./commands/gc.ts")).gcCommand,
  },
  {
    name: "scrub",
    summary: "Check all stored data and list damaged objects and the sandboxes they affect.",
    load: async () => (await import("./commands/scrub.ts")).scrubCommand,
  },
  {
    name: "network",
    summary: "Show and change what a sandbox may reach, and list refused connections.",
    load: async () => (await import("./commands/network.ts")).networkCommand,
  },
  {
    name: "keys",
    summary: "Create, list and revoke API keys of the server on this machine.",
    load: async () => (await import("./commands/keys.ts")).keysCommand,
  },
  {
    name: "config",
    summary: "Show the settings that a server on this machine would use. Hides keys and secrets.",
    load: async () => (await import("./commands/config.ts")).configCommand,
  },
  {
    name: "images",
    summary: "List, pull, import and delete container images on the server's machine.",
    load: async () => (await import("./commands/images.ts")).imagesCommand,
  },
  {
    name: "profiles",
    summary: "List, show and check profiles.",
    load: async () => (await import("./commands/profiles.ts")).profilesCommand,
  },
  {
    name: "server",
    summary: "Show the version, load and warm pool of a server.",
    load: async () => (await import("./commands/server.ts")).serverCommand,
  },
  {
    name: "backends",
    summary: "List the backends, their capabilities and whether they work.",
    load: async () => (await import("./commands/backends.ts")).backendsCommand,
  },
  {
    name: "instances",
    summary: "List the servers that share the store and the sandboxes they own.",
    load: async () => (await import("./commands/instances.ts")).instancesCommand,
  },
  {
    name: "operations",
    summary: "List running and finished operations.",
    load: async () => (await import("./commands/operations.ts")).operationsCommand,
  },
  {
    name: "events",
    summary: "Print or follow the events of a server.",
    load: async () => (await import("./commands/events.ts")).eventsCommand,
  },
];

const TOOL: readonly Row[] = [
  {
    name: "context",
    summary: "Manage named servers and the locations of their keys.",
    load: async () => (await import("./commands/context.ts")).contextCommand,
  },
  {
    name: "mcp",
    summary: "Serve sandboxes as tools to an agent, with the Model Context Protocol on stdin and stdout.",
    load: async () => (await import("./commands/mcp.ts")).mcpCommand,
  },
  {
    name: "api",
    summary: "Send an HTTP request to the server's API.",
    load: async () => (await import("./commands/api.ts")).apiCommand,
  },
  {
    name: "completion",
    summary: "Print the completion script for a shell.",
    load: async () => (await import("./commands/completion.ts")).completionCommand,
  },
  {
    name: "version",
    summary: "Print the versions of this program and of the server.",
    load: async () => (await import("./commands/version.ts")).versionCommand,
  },
  {
    name: "__complete",
    summary: "Print completions for a command line.",
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
