import { posix } from "node:path";
import { SandboxerError } from "@sandboxer/protocol";
import type { FileEntry, SandboxFiles } from "../../backends/backend.ts";
import type { UserSpace } from "./user-space.ts";

/** As the kernel allows. */
const MAX_LINKS = 40;

/** A file with the names of its owners; for a link, the facts of its target. */
export interface DescribedFile {
  readonly name: string;
  readonly path: string;
  /** A link that leads nowhere is a symlink. */
  readonly kind: FileEntry["kind"];
  readonly mode: number;
  readonly sizeBytes: number;
  readonly modifiedMs: number;
  readonly owner: string;
  readonly group: string;
  /** The target of a link, with all links resolved; the text of a dangling one. Undefined: it is no link. */
  readonly leadsTo: string | undefined;
  /** Extended attributes of the user, without `user.`. */
  readonly attributes: ReadonlyMap<string, string>;
}

export async function describePath(space: UserSpace, path: string): Promise<DescribedFile> {
  return describe(space, path, await space.files.stat(path));
}

export async function describe(space: UserSpace, path: string, entry: FileEntry): Promise<DescribedFile> {
  const found = entry.kind === "symlink" ? await behindLink(space.files, path, entry) : { path, entry };
  const { kind, mode, sizeBytes, modifiedMs, uid, gid } = found.entry;
  const { accounts } = space;
  return {
    name: posix.basename(path),
    path,
    kind,
    mode,
    sizeBytes,
    modifiedMs,
    owner: accounts.userName(uid) ?? String(uid),
    group: accounts.groupName(gid) ?? String(gid),
    leadsTo: entry.kind === "symlink" ? found.path : undefined,
    attributes: kind === "file" ? await attributesOf(space, found.path) : new Map(),
  };
}

async function behindLink(
  files: SandboxFiles,
  path: string,
  link: FileEntry,
): Promise<{ path: string; entry: FileEntry }> {
  try {
    const real = await resolveLinks(files, path);
    return { path: real, entry: await files.stat(real) };
  } catch (error) {
    if (!(error instanceof SandboxerError)) throw error;
    return { path: posix.resolve(posix.dirname(path), link.linkTarget ?? ""), entry: link };
  }
}

/** The path without any link in it. `file_not_found`: it leads nowhere. */
export async function resolveLinks(files: SandboxFiles, path: string): Promise<string> {
  let left = parts(path);
  let real = "/";
  for (let links = 0; left.length > 0;) {
    const [name = "", ...rest] = left;
    left = rest;
    if (name === "..") {
      real = posix.dirname(real);
      continue;
    }
    const next = posix.join(real, name);
    const { kind, linkTarget = "" } = await files.stat(next);
    if (kind !== "symlink") {
      real = next;
      continue;
    }
    if (++links > MAX_LINKS) throw new SandboxerError("bad_request", `${path} leads through too many links.`);
    if (linkTarget.startsWith("/")) real = "/";
    left = [...parts(linkTarget), ...rest];
  }
  return real;
}

function parts(path: string): string[] {
  return path.split("/").filter((part) => part !== "" && part !== ".");
}

/** An agent of an earlier release, or a file system without attributes, has none. */
async function attributesOf({ root }: UserSpace, path: string): Promise<ReadonlyMap<string, string>> {
  try {
    const found = (await root?.attributes?.(path)) ?? new Map<string, Uint8Array>();
    return new Map(
      [...found].map(([name, value]) => [name.replace(/^user\./, ""), Buffer.from(value).toString("utf8")]),
    );
  } catch {
    return new Map();
  }
}
