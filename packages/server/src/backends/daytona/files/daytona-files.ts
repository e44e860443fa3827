import { posix } from "node:path";
import { SandboxerError } from "@sandboxer/protocol";
import type { FileAttributes, FileContent, FileEntry, FileRange, SandboxFiles } from "../../backend.ts";
import { checkPath } from "../../extension/shell/shell-files.ts";
import { vendorStatus } from "../daytona-errors.ts";
import type { ToolboxFile } from "../toolbox/schemas.ts";
import type { ToolboxFiles } from "../toolbox/toolbox-files.ts";

/**
 * Content goes through the toolbox. Everything that the toolbox lacks (it always follows links) goes through a shell inside,
 * if the image has one; otherwise the toolbox does its best.
 */
export class DaytonaFiles implements SandboxFiles {
  readonly #toolbox: ToolboxFiles;
  /** Waits for a paused sandbox, refuses one that has ended, and returns the shell's file access, if there is one. */
  readonly #ready: () => Promise<SandboxFiles | undefined>;

  constructor(toolbox: ToolboxFiles, ready: () => Promise<SandboxFiles | undefined>) {
    this.#toolbox = toolbox;
    this.#ready = ready;
  }

  async stat(path: string): Promise<FileEntry> {
    const shell = await this.#at(path);
    return shell === undefined ? entryOf(await this.#toolbox.info(path)) : shell.stat(path);
  }

  async list(path: string): Promise<readonly FileEntry[]> {
    const shell = await this.#at(path);
    return shell === undefined ? (await this.#toolbox.list(path)).map(entryOf) : shell.list(path);
  }

  async *read(path: string, { offset = 0, length }: FileRange = {}): AsyncGenerator<Uint8Array> {
    await this.#at(path);
    if (length === 0) return;
    const whole = offset === 0 && length === undefined;
    const answer = await this.#open(path, whole ? undefined : { offset, length });
    if (answer === undefined) return;
    // A server without range support sends the whole file.
    let skip = answer.status === 206 ? 0 : offset;
    let left = length ?? Number.POSITIVE_INFINITY;
    for await (const chunk of answer.body ?? []) {
      const wanted = chunk.subarray(skip, skip + left);
      skip = Math.max(0, skip - chunk.length);
      left -= wanted.length;
      if (wanted.length > 0) yield wanted;
      if (left <= 0) break;
    }
  }

  /** The daemon creates missing parents, which this contract does not allow. */
  async write(path: string, content: FileContent, options: { mode?: number } = {}): Promise<void> {
    await this.#at(path);
    await this.#toolbox.requireFolder(posix.dirname(path));
    const made = options.mode !== undefined && !(await this.#exists(path));
    await this.#toolbox.upload(path, content);
    if (made && options.mode !== undefined) await this.#toolbox.setMode(path, options.mode);
  }

  async makeFolder(path: string, options: { readonly parents?: boolean } = {}): Promise<void> {
    const shell = await this.#at(path);
    if (options.parents === true) return this.#toolbox.makeFolder(path);
    if (shell !== undefined) return shell.makeFolder(path);
    await this.#toolbox.requireFolder(posix.dirname(path));
    if (await this.#exists(path)) throw new SandboxerError("bad_request", `${path} already exists.`);
    await this.#toolbox.makeFolder(path);
  }

  async remove(path: string, options: { readonly recursive?: boolean } = {}): Promise<void> {
    const shell = await this.#at(path);
    return shell === undefined ? this.#toolbox.remove(path, options.recursive === true) : shell.remove(path, options);
  }

  async rename(from: string, to: string): Promise<void> {
    checkPath(to);
    const shell = await this.#at(from);
    return shell === undefined ? this.#toolbox.move(from, to) : shell.rename(from, to);
  }

  async makeSymlink(target: string, path: string): Promise<void> {
    const shell = await this.#at(path);
    if (shell === undefined) throw lacking("links");
    return shell.makeSymlink(target, path);
  }

  async makeHardLink(existing: string, path: string): Promise<void> {
    checkPath(existing);
    const shell = await this.#at(path);
    if (shell?.makeHardLink === undefined) throw lacking("links");
    return shell.makeHardLink(existing, path);
  }

  async set(path: string, attributes: FileAttributes): Promise<void> {
    const shell = await this.#at(path);
    if (shell !== undefined) return shell.set(path, attributes);
    if (attributes.modifiedNs !== undefined) throw lacking("times of files");
    if (attributes.mode !== undefined) await this.#toolbox.setMode(path, attributes.mode);
  }

  async #at(path: string): Promise<SandboxFiles | undefined> {
    checkPath(path);
    return this.#ready();
  }

  /** A range beyond the end is empty; HTTP has a status for it. */
  async #open(path: string, range?: { offset: number; length: number | undefined }): Promise<Response | undefined> {
    try {
      return await this.#toolbox.download(path, range);
    } catch (thrown) {
      if (vendorStatus(thrown) === 416) return undefined;
      throw thrown;
    }
  }

  async #exists(path: string): Promise<boolean> {
    try {
      await this.#toolbox.info(path);
      return true;
    } catch (thrown) {
      if (thrown instanceof SandboxerError && thrown.code === "file_not_found") return false;
      throw thrown;
    }
  }
}

function entryOf({ name, isDir, mode, permissions, size, modifiedAt, owner, group }: ToolboxFile): FileEntry {
  return {
    name,
    kind: isDir ? "folder" : /^[-]/.test(mode) ? "file" : "other",
    mode: Number.parseInt(permissions, 8) || 0,
    uid: Number(owner) || 0,
    gid: Number(group) || 0,
    sizeBytes: size,
    modifiedMs: modifiedAt === undefined ? 0 : Date.parse(modifiedAt) || 0,
    linkTarget: undefined,
  };
}

function lacking(what: string): SandboxerError {
  return new SandboxerError("not_supported", `This Daytona image lacks the tools that ${what} need.`, {
    hint: "Use an image with sh, stat, readlink and the usual tools, such as Debian's.",
  });
}
