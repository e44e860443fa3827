import type { FileEntry } from "./records.ts";
import type { SandboxCalls } from "./sandbox-calls.ts";
import type { Bytes, CallOptions } from "./wire/call-types.ts";
import { isSandboxerError } from "./wire/errors.ts";
import { fromWire } from "./wire/naming.ts";

export interface ReadOptions extends CallOptions {
  /** Bytes; default: from the beginning. */
  readonly offset?: number | undefined;
  /** Bytes; default: to the end. */
  readonly length?: number | undefined;
}

export interface WriteOptions extends CallOptions {
  /** Such as 0o644. */
  readonly mode?: number | undefined;
  /** Creates missing parent folders. Default: true. */
  readonly parents?: boolean | undefined;
}

export interface UploadResult {
  /** Files and links. */
  readonly files: number;
  readonly bytes: number;
}

/** The files of a sandbox. Paths are absolute. */
export class SandboxFiles {
  readonly #calls: SandboxCalls;

  constructor(calls: SandboxCalls) {
    this.#calls = calls;
  }

  async read(path: string, options: ReadOptions = {}): Promise<Uint8Array> {
    const { offset, length, ...call } = options;
    return this.#calls.read(
      "readFile",
      { params: this.#params, query: { path, ...given({ offset, length }) } },
      call,
      async (response) => new Uint8Array(await response.arrayBuffer()),
    );
  }

  /** As UTF-8. */
  async readText(path: string, options: ReadOptions = {}): Promise<string> {
    return new TextDecoder().decode(await this.read(path, options));
  }

  /** As a stream, for files that do not fit into memory. */
  async readStream(path: string, options: ReadOptions = {}): Promise<ReadableStream<Uint8Array>> {
    const { offset, length, ...call } = options;
    const input = { params: this.#params, query: { path, ...given({ offset, length }) } };
    return this.#calls.read("readFile", input, call, async (response) => bodyOf(response));
  }

  /** Writes a file, creating or replacing it. */
  async write(path: string, data: Bytes, options: WriteOptions = {}): Promise<void> {
    const { mode, parents = true, ...call } = options;
    const query = { path, parents, ...(mode === undefined ? {} : { mode: mode.toString(8).padStart(4, "0") }) };
    await this.#calls.call("writeFile", { params: this.#params, query, body: data }, call);
  }

  /** Lists a folder, sorted by name. */
  async list(path: string, options: CallOptions = {}): Promise<FileEntry[]> {
    const page = await this.#calls.call("listFiles", { params: this.#params, query: { path } }, options);
    return fromWire(page.items);
  }

  async stat(path: string, options: CallOptions = {}): Promise<FileEntry> {
    return fromWire(await this.#calls.call("statFile", { params: this.#params, query: { path } }, options));
  }

  async exists(path: string, options: CallOptions = {}): Promise<boolean> {
    return this.stat(path, options).then(
      () => true,
      (error: unknown) => {
        if (isSandboxerError(error, "file_not_found")) return false;
        throw error;
      },
    );
  }

  /** Deletes a file; a folder only with `recursive`. */
  async remove(path: string, options: CallOptions & { readonly recursive?: boolean | undefined } = {}): Promise<void> {
    const { recursive = false, ...call } = options;
    await this.#calls.call("removeFile", { params: this.#params, query: { path, recursive } }, call);
  }

  async mkdir(path: string, options: CallOptions & { readonly parents?: boolean | undefined } = {}): Promise<void> {
    const { parents = true, ...call } = options;
    await this.#calls.call("makeFolder", { params: this.#params, body: { path, parents } }, call);
  }

  async rename(from: string, to: string, options: CallOptions = {}): Promise<void> {
    await this.#calls.call("renameFile", { params: this.#params, body: { from, to } }, options);
  }

  /**
   * A file or folder with its contents, as a tar archive. In Node, `downloadFolder` of `@sandboxer/client/node` unpacks
   * it.
   */
  async downloadTar(
    path: string,
    options: CallOptions & { readonly skipUnreadable?: boolean | undefined } = {},
  ): Promise<ReadableStream<Uint8Array>> {
    const { skipUnreadable = false, ...call } = options;
    const query = { path, ...(skipUnreadable ? { skip_unreadable: true } : {}) };
    return this.#calls.read("downloadTree", { params: this.#params, query }, call, async (response) =>
      bodyOf(response),
    );
  }

  /** Unpacks a tar archive into a folder. In Node, `uploadFolder` of `@sandboxer/client/node` packs one. */
  async uploadTar(path: string, tar: Bytes, options: CallOptions = {}): Promise<UploadResult> {
    return this.#calls.call("uploadTree", { params: this.#params, query: { path }, body: tar }, options);
  }

  get #params(): { id: string } {
    return { id: this.#calls.sandboxId };
  }
}

function bodyOf(response: Response): ReadableStream<Uint8Array> {
  return response.body ?? new ReadableStream({ start: (controller) => controller.close() });
}

function given<Fields extends Record<string, unknown>>(
  fields: Fields,
): { [Key in keyof Fields]?: NonNullable<Fields[Key]> } {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as never;
}
