import type { FileEntry, ListeningPort, ProcessTableEntry, SandboxFiles } from "../backend.ts";

/** Rows have about 150 bytes; more than thousands of sockets are cut. */
const MAX_TABLE_BYTES = 1024 * 1024;
const LISTENING = "0A";
/** More are not looked into. */
const MAX_PROCESSES = 64;

/** A socket as the kernel's tables have it: they name no process. */
export interface ListeningSocket extends ListeningPort {
  /** Absent: unknown. */
  readonly inode?: string;
}

/** Reads the kernel's tables of sockets inside a sandbox. A missing table has no sockets. */
export async function readListeningPorts(files: SandboxFiles): Promise<ListeningSocket[]> {
  const tables = await Promise.all(["/proc/net/tcp", "/proc/net/tcp6"].map((path) => readTable(files, path)));
  return tables.flatMap(parseSocketTable).toSorted((left, right) => left.port - right.port);
}

async function readTable(files: SandboxFiles, path: string): Promise<string> {
  const chunks: Uint8Array[] = [];
  try {
    for await (const chunk of files.read(path, { length: MAX_TABLE_BYTES })) chunks.push(chunk);
  } catch {
    return "";
  }
  return Buffer.concat(chunks).toString("latin1");
}

/**
 * With the processes that have the sockets, as far as their descriptors can be read: `list` lists a folder with the
 * rights of a process's user. gVisor shows the agent only those of root's processes. Of several, the one that was
 * started first.
 */
export async function withProcesses(
  sockets: readonly ListeningSocket[],
  processes: readonly ProcessTableEntry[],
  list: (path: string, uid: number) => Promise<readonly Pick<FileEntry, "linkTarget">[]>,
): Promise<ListeningPort[]> {
  const holders = new Map<string, ProcessTableEntry>();
  const looked = sockets.some(({ inode }) => inode !== undefined) ? processes.slice(0, MAX_PROCESSES) : [];
  const found = await Promise.all(
    looked.map(async (process) => ({
      process,
      files: await list(`/proc/${process.pid}/fd`, process.uid).catch(() => []),
    })),
  );
  for (const { process, files } of found) {
    for (const { linkTarget } of files) {
      const inode = /^socket:\[(\d+)\]$/.exec(linkTarget ?? "")?.[1];
      if (inode !== undefined && !holders.has(inode)) holders.set(inode, process);
    }
  }
  return sockets.map(({ inode, ...port }) => {
    const holder = inode === undefined ? undefined : holders.get(inode);
    return holder === undefined ? port : { ...port, process: { pid: holder.pid, command: holder.command } };
  });
}

/** The listening sockets of a table such as `/proc/net/tcp`. Lines of another form are skipped. */
export function parseSocketTable(table: string): ListeningSocket[] {
  return table.split("\n").flatMap((line) => {
    const [, local = "", , state, , , , , , inode = "0"] = line.trim().split(/\s+/);
    const [, address = "", port = ""] = /^((?:[0-9A-F]{8}){1,4}):([0-9A-F]{4})$/.exec(local) ?? [];
    return state === LISTENING && address !== ""
      ? [
          {
            port: Number.parseInt(port, 16),
            address: addressText(address),
            ...(/^[1-9]\d*$/.test(inode) ? { inode } : {}),
          },
        ]
      : [];
  });
}

/** Addresses are words of 32 bits in the byte order of the machine, which is little-endian on all that we support. */
function addressText(hex: string): string {
  const bytes = (hex.match(/.{8}/g) ?? []).flatMap((word) => [...Buffer.from(word, "hex")].toReversed());
  if (bytes.length === 4) return bytes.join(".");
  const groups = Array.from({ length: 8 }, (_, index) => ((bytes[2 * index] ?? 0) << 8) | (bytes[2 * index + 1] ?? 0));
  const isMapped = groups.slice(0, 5).every((group) => group === 0) && groups[5] === 0xff_ff;
  if (isMapped) return bytes.slice(12).join(".");
  const text = groups.map((group) => group.toString(16)).join(":");
  return new URL(`http://[${text}]`).hostname.slice(1, -1);
}
