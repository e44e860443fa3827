import { createHash, randomBytes } from "node:crypto";
import { posix } from "node:path";
import type { SandboxFiles } from "../../../src/backends/backend.ts";
import type { SandboxClient } from "./processes/support.ts";

const MIB = 1024 * 1024;
const SIZES = [0, 1, 64 * 1024 - 1, 64 * 1024, 64 * 1024 + 1, 5 * MIB + 1];
const NAMES = [
  "two\nlines",
  "-rf",
  "--help",
  " space ",
  "ünï-日本-🙂",
  "quote\"'$(x)`",
  "back\\slash",
  "*",
  "n".repeat(255),
  `d${"é".repeat(127)}`,
];
const FOLDER_MODES = [0o000, 0o1777, 0o2750];
const MODES = [0o000, 0o400, 0o755, 0o1777, 0o4755, 0o2750];

/** Everything that is odd about a tree and that files of this interface can be. */
export async function makeOddTree(files: SandboxFiles, root = "/workspace"): Promise<void> {
  const at = (...parts: string[]): string => posix.join(root, ...parts);
  for (const size of SIZES) await files.write(at(`size-${size}`), randomBytes(size));
  for (const name of NAMES) await files.write(at(name), Buffer.from(name));
  await files.makeFolder(at("empty"));
  await files.makeFolder(at(...Array.from({ length: 4 }, (_, depth) => `${depth}`.repeat(120))), { parents: true });
  await files.makeFolder(at("-folder"));
  await files.write(at("-folder", "inside"), Buffer.from("in"));
  await files.makeSymlink("nowhere", at("dangling"));
  await files.makeSymlink("/etc/hostname", at("absolute"));
  await files.makeSymlink("-folder", at("to-folder"));
  await files.makeSymlink(`${"../".repeat(60)}far`, at("long-link"));
  for (const mode of MODES) {
    await files.write(at(`mode-${mode.toString(8)}`), Buffer.from("m"));
    await files.set(at(`mode-${mode.toString(8)}`), { mode, modifiedNs: 1_600_000_000_000_000_000n });
  }
  for (const mode of FOLDER_MODES) await files.makeFolder(at(`folder-${mode.toString(8)}`));
  await files.set(at("dangling"), { modifiedNs: 1_500_000_000_000_000_000n });
  await files.set(at("empty"), { mode: 0o700, modifiedNs: 1_400_000_000_000_000_000n });
  for (const mode of FOLDER_MODES) await files.set(at(`folder-${mode.toString(8)}`), { mode });
  await files.set(root, { mode: 0o775, modifiedNs: 1_700_000_000_000_000_000n });
}

/**
 * For a shell inside the workspace: names of one file, also of one that acts as its group, in other folders too. In runsc
 * of 2024 linking clears those bits.
 */
export const MAKE_HARD_LINKS = `
ln mode-4755 second; ln mode-4755 ./-folder/third; ln mode-2750 "$(printf 'l%.0s' $(seq 200))"; ln size-0 empty-twin
chmod 4755 mode-4755; chmod 2750 mode-2750
touch -d @1400000000 ./-folder .`;
/** Says whether the names still are one file, and no others. */
export const SHOW_HARD_LINKS = `
[ mode-4755 -ef second ] && [ second -ef ./-folder/third ] && [ size-0 -ef empty-twin ] && echo one
[ mode-4755 -ef mode-755 ] || echo others`;
/** Extended attributes with values of any bytes, on a file, a file that may not be written, and folders. */
export const MAKE_ATTRIBUTES = `python3 -c '
import os
os.setxattr("size-1", "user.text", b"plain")
os.setxattr("size-1", b"user.odd=%\\xff", bytes(range(256)))
os.setxattr("empty", "user.folder", b"")
os.setxattr(".", "user.root", b"r" * 3000)
os.chmod("mode-400", 0o600); os.setxattr("mode-400", "user.closed", b"c"); os.chmod("mode-400", 0o400)
'`;
export const SHOW_ATTRIBUTES = `python3 -c '
import os
for path in ("size-1", "empty", ".", "mode-400", "size-0"):
    print(path, sorted((os.fsencode(name), os.getxattr(path, name)) for name in os.listxattr(path)))
'`;

/**
 * The same of the workspace through one shell inside, which is much quicker where each look is a command: a line for each
 * entry, and one for the content of each file that can be read; as base64, because of the names.
 */
export async function describeInside(box: SandboxClient): Promise<string[]> {
  const script = String.raw`cd /workspace
    { find . ! -type p \( -type f -printf 'f %s %n ' -o -printf '%y ' \) -printf '%m %U:%G %Ts %l %p\0' 2>/dev/null
      find . -type f -readable -exec sha256sum -z {} + 2>/dev/null; } | LC_ALL=C sort -z | base64 -w0`;
  const { stdout } = await box.exec({ shell: script });
  return Buffer.from(stdout, "base64").toString("latin1").split("\0").toSorted();
}

/** Every entry of a tree by path, with all that a capture is to keep. Times in whole seconds. */
export async function describeTree(files: SandboxFiles, root = "/workspace"): Promise<Record<string, string>> {
  const found: Record<string, string> = {};
  const look = async (path: string): Promise<void> => {
    const entry = await files.stat(path);
    const { kind, mode, uid, gid, modifiedMs, linkTarget } = entry;
    const hash = createHash("sha256");
    if (kind === "file") for await (const chunk of files.read(path)) hash.update(chunk);
    const content =
      kind === "file"
        ? `${entry.sizeBytes} ${hash.digest("hex").slice(0, 16)} ${entry.links ?? 1}`
        : (linkTarget ?? "");
    const bits = kind === "symlink" ? "" : (mode & 0o7777).toString(8);
    found[path] = `${kind} ${bits} ${uid}:${gid} ${Math.floor(modifiedMs / 1000)} ${content}`;
    if (kind !== "folder") return;
    for (const { name } of await files.list(path)) await look(posix.join(path, name));
  };
  await look(root);
  return found;
}
