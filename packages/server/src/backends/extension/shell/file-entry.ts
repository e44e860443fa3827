import { SandboxerError } from "@sandboxer/protocol";
import type { FileEntry } from "../../backend.ts";

/**
 * One entry as `name NUL fields NUL link target NUL`. `stat -c` of GNU and busybox support these fields; the shell
 * prints the names, because both would quote them. A target ends with a dot, which protects its newlines from the
 * shell.
 */
export const DESCRIBE = `
describe() {
  fields=$(stat -c '%f %u %g %s %Y %d %i %h' -- "$1") || return
  target=
  if [ -L "$1" ]; then target=$(readlink -n -- "$1" && printf .) || return; fi
  printf '%s\\0%s\\0%s\\0' "$2" "$fields" "\${target%.}"
}
`;

const KINDS: Readonly<Record<number, FileEntry["kind"]>> = { 0o10: "file", 0o4: "folder", 0o12: "symlink" };
const PARTS = 3;

export function parseEntries(output: Buffer): FileEntry[] {
  const parts = output.toString("utf8").split("\0");
  const entries: FileEntry[] = [];
  for (let at = 0; at + PARTS <= parts.length - 1; at += PARTS) {
    entries.push(parseEntry(parts[at] ?? "", parts[at + 1] ?? "", parts[at + 2] ?? ""));
  }
  return entries;
}

function parseEntry(name: string, fields: string, target: string): FileEntry {
  const match = /^([0-9a-f]+) (\d+) (\d+) (\d+) (-?\d+) (\d+) (\d+) (\d+)/.exec(fields);
  if (match === null)
    throw new SandboxerError("sandbox_failed", `stat in the sandbox printed "${fields.slice(0, 80)}".`);
  const raw = Number.parseInt(match[1] ?? "", 16);
  const kind = KINDS[raw >> 12] ?? "other";
  return {
    name,
    kind,
    mode: raw & 0o7777,
    uid: Number(match[2]),
    gid: Number(match[3]),
    sizeBytes: Number(match[4]),
    modifiedMs: Number(match[5]) * 1000,
    linkTarget: kind === "symlink" ? target : undefined,
    device: BigInt(match[6] ?? 0),
    inode: BigInt(match[7] ?? 0),
    links: Number(match[8]),
  };
}
