import type { FileEntry } from "../backend.ts";
import { MalformedFrameError, type PayloadReader, type StringEncoding } from "./payload.ts";

/** The name limit of the system inside. */
const MAX_NAME_BYTES = 255;
const MAX_TARGET_BYTES = 4096;
const KINDS: Readonly<Record<string, FileEntry["kind"]>> = { f: "file", d: "folder", l: "symlink" };

/** An entry with the facts that only a whole-tree walk needs: the device, to stay on one filesystem, and hard links. */
export interface AgentFileEntry extends FileEntry {
  readonly kindLetter: string;
  readonly device: bigint;
  readonly inode: bigint;
  readonly links: number;
  readonly modifiedNs: bigint;
}

interface Page {
  readonly more: boolean;
  readonly entries: AgentFileEntry[];
  /** The size as received, a little more than their names and targets. */
  readonly bytes: number;
}

export function readPage(reply: PayloadReader, names: StringEncoding): Page {
  const more = reply.u8() === 1;
  const bytes = reply.left;
  const entries = reply.list(() => readEntry(reply, names));
  if (more && entries.length === 0) throw new MalformedFrameError("an empty page of a folder");
  return { more, entries, bytes };
}

function readText(reply: PayloadReader, names: StringEncoding, maxBytes: number): string {
  const bytes = reply.bytes();
  if (bytes.length > maxBytes) throw new MalformedFrameError("a name of a file that is too long");
  return bytes.toString(names);
}

export function readEntry(reply: PayloadReader, names: StringEncoding): AgentFileEntry {
  const kindLetter = String.fromCharCode(reply.u8());
  const [mode, uid, gid] = [reply.u32(), reply.u32(), reply.u32()];
  const sizeBytes = reply.u64();
  const modifiedNs = reply.i64();
  const [device, inode, links] = [reply.u64Exact(), reply.u64Exact(), reply.u32()];
  const name = readText(reply, names, MAX_NAME_BYTES);
  const target = readText(reply, names, MAX_TARGET_BYTES);
  return {
    name,
    kind: KINDS[kindLetter] ?? "other",
    kindLetter,
    mode,
    uid,
    gid,
    sizeBytes,
    modifiedMs: Number(modifiedNs / 1_000_000n),
    modifiedNs,
    linkTarget: kindLetter === "l" ? target : undefined,
    device,
    inode,
    links,
  };
}
