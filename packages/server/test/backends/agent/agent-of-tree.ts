import { createReadStream } from "node:fs";
import { extract, type Header } from "tar-stream";
import type { AgentFiles } from "../../../src/backends/agent/agent-files.ts";
import type { AgentFileEntry } from "../../../src/backends/agent/file-entry.ts";

const ROOT_DEVICE = 1n;

export type Tree = Readonly<Record<string, Node>>;

export interface Node extends Partial<AgentFileEntry> {
  readonly content?: Buffer;
  readonly below?: Tree;
  /** The returned content is this much shorter. */
  readonly missing?: number;
}

function entryOf(name: string, node: Node): AgentFileEntry {
  return {
    name,
    kind: node.below === undefined ? "file" : "folder",
    kindLetter: "f",
    mode: 0o644,
    uid: 1000,
    gid: 1000,
    sizeBytes: node.content?.length ?? 0,
    modifiedMs: 1_700_000_000_000,
    modifiedNs: 1_700_000_000_000_000_000n,
    linkTarget: undefined,
    device: ROOT_DEVICE,
    inode: 1n,
    links: 1,
    ...node,
  };
}

/** The agent of a sandbox with these files, the largest number of concurrent reads, and the listed folders. */
export function agentOf(root: Tree): {
  readonly files: AgentFiles;
  readonly reads: { most: number };
  readonly listed: readonly string[];
} {
  const reads = { most: 0 };
  const listed: string[] = [];
  let underWay = 0;
  const find = (path: string): Node => {
    let node: Node | undefined = { below: root };
    for (const name of path.split("/").filter((part) => part !== "")) node = node?.below?.[name];
    return node ?? { below: {} };
  };
  const files = {
    stat: async (path: string) => entryOf(path, find(path)),
    list: async (path: string) => {
      listed.push(path);
      return Object.entries(find(path).below ?? {}).map(([name, node]) => entryOf(name, node));
    },
    readInto: async (path: string, offset: number, memory: Buffer) => {
      underWay += 1;
      reads.most = Math.max(reads.most, underWay);
      await new Promise(setImmediate);
      underWay -= 1;
      const { content = Buffer.alloc(0), missing = 0 } = find(path);
      const copied = content.subarray(0, content.length - missing).copy(memory, 0, offset);
      return memory.subarray(0, copied);
    },
  };
  return { files: files as unknown as AgentFiles, reads, listed };
}

/** The contents of an archive, in order; each character of a name is one byte. */
export async function entriesOf(
  archive: string,
): Promise<readonly { readonly header: Header; readonly content: Buffer }[]> {
  const found: { header: Header; content: Buffer }[] = [];
  const entries = extract({ filenameEncoding: "latin1" } as object);
  createReadStream(archive).pipe(entries);
  for await (const entry of entries) {
    const content: Buffer[] = [];
    for await (const chunk of entry as unknown as AsyncIterable<Buffer>) content.push(chunk);
    found.push({ header: entry.header, content: Buffer.concat(content) });
  }
  return found;
}
