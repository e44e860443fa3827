import { posix } from "node:path";
import { SandboxerError, type ErrorCode } from "@sandboxer/protocol";
import type { FileAttributes, FileContent, FileEntry, FileRange, SandboxFiles } from "../../backend.ts";
import { DESCRIBE, parseEntries } from "./file-entry.ts";
import { collect, runShell, type StartShell, type ShellResult } from "./run-shell.ts";

const LIST = `${DESCRIBE}
ls -d -- "$1" > /dev/null || exit 1
[ -d "$1" ] || { echo "Not a directory" >&2; exit 1; }
cd -- "$1" 2> /dev/null || { echo "Permission denied" >&2; exit 1; }
for entry in * .[!.]* ..?*; do
  [ -e "$entry" ] || [ -L "$entry" ] || continue
  describe "./$entry" "$entry" 2>/dev/null
done
exit 0
`;
const STAT = `${DESCRIBE} describe "$1" "$2"`;
const READ = `[ ! -d "$1" ] || { echo "Is a directory" >&2; exit 1; }
exec 3< "$1" || exit 1
if [ -n "$3" ]; then tail -c "+$2" <&3 | head -c "$3"; else exec tail -c "+$2" <&3; fi`;
/** The mode is set before the content, for a new file; the content replaces the old one in place. */
const WRITE = `[ ! -d "$1" ] || { echo "Is a directory" >&2; exit 1; }
if [ ! -e "$1" ]; then umask 077; : > "$1" || exit 1; chmod "$2" "$1" || exit 1; fi
cat > "$1"`;
const REMOVE = `[ -e "$1" ] || [ -L "$1" ] || { ls -d -- "$1"; exit 1; }
if [ -d "$1" ] && [ ! -L "$1" ]; then exec rmdir -- "$1"; fi
exec rm -- "$1"`;
const REMOVE_ALL = `[ -e "$1" ] || [ -L "$1" ] || { ls -d -- "$1"; exit 1; }
exec rm -r -f -- "$1"`;
/** Onto the name itself, even if a folder has that name: mv would move into it. */
const RENAME = `if [ -d "$2" ] && [ ! -L "$2" ]; then rmdir -- "$2" || exit 1; fi
exec mv -f -- "$1" "$2"`;

/** Never into a folder of that name, which is what ln does otherwise. */
const MAKE_LINK = `if [ -e "$2" ] || [ -L "$2" ]; then echo "File exists" >&2; exit 1; fi
exec ln -s -- "$1" "$2"`;
const MAKE_HARD_LINK = `if [ -e "$2" ] || [ -L "$2" ]; then echo "File exists" >&2; exit 1; fi
exec ln -- "$1" "$2"`;
const SET = `if [ -n "$2" ]; then [ ! -L "$1" ] && chmod -- "$2" "$1" || exit 1; fi
if [ -n "$3" ]; then exec touch -h -d "@$3" -- "$1"; fi`;

/** Files through a shell inside, with the rights that it has. */
export class ShellFiles implements SandboxFiles {
  readonly #start: StartShell;

  constructor(start: StartShell) {
    this.#start = start;
  }

  async stat(path: string): Promise<FileEntry> {
    checkPath(path);
    const entry = parseEntries(await this.#run(path, STAT, [path, posix.basename(path)]))[0];
    if (entry === undefined) throw new SandboxerError("sandbox_failed", `stat in the sandbox printed nothing.`);
    return entry;
  }

  async list(path: string): Promise<readonly FileEntry[]> {
    checkPath(path);
    return parseEntries(await this.#run(path, LIST, [path]));
  }

  async *read(path: string, { offset = 0, length }: FileRange = {}): AsyncGenerator<Uint8Array> {
    checkPath(path);
    const process = await this.#start(READ, [path, String(offset + 1), length === undefined ? "" : String(length)]);
    process.stdin.on("error", () => {}).end();
    const stderr = collect(process.stderr, 1 << 16);
    stderr.catch(() => {});
    let done = false;
    try {
      yield* process.stdout as AsyncIterable<Uint8Array>;
      const { code } = await process.exited;
      done = true;
      const said = (await stderr).toString("utf8");
      if (code !== 0) throw fileError(path, { code, stdout: Buffer.alloc(0), stderr: said });
    } finally {
      if (!done) process.abandon();
    }
  }

  async write(path: string, content: FileContent, options: { mode?: number } = {}): Promise<void> {
    checkPath(path);
    const mode = (options.mode ?? 0o644).toString(8);
    await this.#run(path, WRITE, [path, mode], content instanceof Uint8Array ? only(content) : content);
  }

  async makeFolder(path: string, options: { readonly parents?: boolean } = {}): Promise<void> {
    checkPath(path);
    await this.#run(path, `exec mkdir ${options.parents === true ? "-p " : ""}-- "$1"`, [path]);
  }

  async remove(path: string, options: { readonly recursive?: boolean } = {}): Promise<void> {
    checkPath(path);
    await this.#run(path, options.recursive === true ? REMOVE_ALL : REMOVE, [path]);
  }

  async rename(from: string, to: string): Promise<void> {
    checkPath(from);
    checkPath(to);
    await this.#run(from, RENAME, [from, to]);
  }

  async makeSymlink(target: string, path: string): Promise<void> {
    checkPath(path);
    await this.#run(path, MAKE_LINK, [target, path]);
  }

  async makeHardLink(existing: string, path: string): Promise<void> {
    checkPath(existing);
    checkPath(path);
    await this.#run(existing, MAKE_HARD_LINK, [existing, path]);
  }

  async set(path: string, { mode, modifiedNs }: FileAttributes): Promise<void> {
    checkPath(path);
    const seconds = modifiedNs === undefined ? "" : String(modifiedNs / 1_000_000_000n);
    await this.#run(path, SET, [path, mode === undefined ? "" : mode.toString(8), seconds]);
  }

  async #run(path: string, script: string, args: string[], input?: AsyncIterable<Uint8Array>): Promise<Buffer> {
    const result = await runShell(this.#start, script, args, input);
    if (result.code !== 0) throw fileError(path, result);
    return result.stdout;
  }
}

export function checkPath(path: string): void {
  if (path.startsWith("/") && !path.includes("\0")) return;
  throw new SandboxerError("bad_request", `${JSON.stringify(path)} is not an absolute path.`);
}

async function* only(content: Uint8Array): AsyncGenerator<Uint8Array> {
  yield content;
}

/** Messages of the tools in the C locale, which is nearly the same in GNU's, busybox's, dash's and musl's. */
const REASONS: readonly (readonly [text: string, code: ErrorCode, says: string])[] = [
  ["No such file", "file_not_found", "does not exist"],
  ["nonexistent", "file_not_found", "does not exist"],
  ["Permission denied", "permission_denied", "cannot be accessed"],
  ["Operation not permitted", "permission_denied", "cannot be changed"],
  ["Read-only file system", "permission_denied", "is on a read-only file system"],
  ["No space left on device", "no_space", "does not fit: the volume is full"],
  ["Disk quota exceeded", "no_space", "does not fit: the quota is used up"],
  ["File exists", "bad_request", "already exists"],
  ["Directory not empty", "bad_request", "is a folder that is not empty"],
  ["Not a directory", "bad_request", "is not a folder"],
  ["s a directory", "bad_request", "is a folder"],
];

function fileError(path: string, result: ShellResult): SandboxerError {
  const said = result.stderr.toLowerCase();
  const reason = REASONS.find(([text]) => said.includes(text.toLowerCase()));
  if (reason !== undefined) return new SandboxerError(reason[1], `${path} ${reason[2]}.`);
  if (result.code === 127) {
    return new SandboxerError(
      "not_supported",
      `File operations need a tool that the sandbox does not have: ${result.stderr.trim()}`,
    );
  }
  const last = result.stderr.trim().split("\n").at(-1) ?? "";
  return new SandboxerError("bad_request", `${path}: ${last === "" ? `exit code ${result.code ?? "none"}` : last}`);
}
