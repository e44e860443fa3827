import type { ListeningPort, SandboxFiles } from "../backend.ts";

/** Rows have about 150 bytes; more than thousands of sockets are cut. */
const MAX_TABLE_BYTES = 1024 * 1024;
const LISTENING = "0A";

/**
 * Reads the kernel's tables of sockets inside a sandbox. A missing table has no sockets. The tables do not name
 * processes, and the agent may not look into the descriptors of others.
 */
export async function readListeningPorts(files: SandboxFiles): Promise<ListeningPort[]> {
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

/** The listening sockets of a table such as `/proc/net/tcp`. Lines of another form are skipped. */
export function parseSocketTable(table: string): ListeningPort[] {
  return table.split("\n").flatMap((line) => {
    const [, local = "", , state] = line.trim().split(/\s+/);
    const [, address = "", port = ""] = /^((?:[0-9A-F]{8}){1,4}):([0-9A-F]{4})$/.exec(local) ?? [];
    return state === LISTENING && address !== ""
      ? [{ port: Number.parseInt(port, 16), address: addressText(address) }]
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
