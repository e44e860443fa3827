import { posix } from "node:path";
import { asSandboxerError, SandboxerError } from "@sandboxer/protocol";
import type { UserFiles } from "../../../manager/files/user-files.ts";
import type { TreeChange } from "../../../manager/files/watch-tree.ts";
import { entryView, type EntryView } from "./entry-view.ts";

/** Events that wait for their reader. */
const MAX_WAITING = 10_000;

const TYPES = {
  created: "EVENT_TYPE_CREATE",
  written: "EVENT_TYPE_WRITE",
  removed: "EVENT_TYPE_REMOVE",
  renamed: "EVENT_TYPE_RENAME",
  attributes: "EVENT_TYPE_CHMOD",
} as const;

export interface WatchEvent {
  readonly name: string;
  readonly type: (typeof TYPES)[keyof typeof TYPES];
  /** For existing files, if the client asked for it. */
  readonly entry?: EntryView;
}

export interface WatcherOptions {
  readonly recursive: boolean;
  readonly includeEntry: boolean;
}

/** The events of a folder, kept until they are read. */
export class Watcher {
  readonly #files: UserFiles;
  readonly #path: string;
  readonly #options: WatcherOptions;
  #waiting: TreeChange[] = [];
  #failure: SandboxerError | undefined;
  #wake = Promise.withResolvers<void>();
  #close: () => void = () => {};

  private constructor(files: UserFiles, path: string, options: WatcherOptions) {
    this.#files = files;
    this.#path = path;
    this.#options = options;
  }

  static async open(files: UserFiles, path: string, options: WatcherOptions): Promise<Watcher> {
    const watcher = new Watcher(files, path, options);
    const watch = await files.watch(path, options.recursive, {
      onChange: (change) => watcher.#add(change),
      onEnd: (error) => watcher.#fail(error),
    });
    watcher.#close = () => watch.close();
    if (watcher.#failure !== undefined) watch.close();
    return watcher;
  }

  close(): void {
    this.#close();
  }

  /** The events since the last call. Throws once they are read and nothing more can come. */
  async take(): Promise<WatchEvent[]> {
    const changes = this.#waiting;
    this.#waiting = [];
    if (changes.length === 0 && this.#failure !== undefined) throw this.#failure;
    const events: WatchEvent[] = [];
    for (const change of changes) events.push(await this.#eventOf(change));
    return events;
  }

  /** Resolves when there are events, or the signal is aborted. Throws if nothing more can come. */
  async ready(signal: AbortSignal): Promise<void> {
    while (this.#waiting.length === 0 && this.#failure === undefined && !signal.aborted) {
      const { promise, resolve } = this.#wake;
      signal.addEventListener("abort", () => resolve(), { once: true });
      await promise;
    }
  }

  #add(change: TreeChange): void {
    if (this.#waiting.length >= MAX_WAITING) return this.#fail(notRead());
    this.#waiting.push(change);
    this.#notify();
  }

  #fail(error: SandboxerError): void {
    this.#failure ??= error;
    this.#close();
    this.#notify();
  }

  #notify(): void {
    this.#wake.resolve();
    this.#wake = Promise.withResolvers();
  }

  async #eventOf({ name, kind }: TreeChange): Promise<WatchEvent> {
    const event = { name, type: TYPES[kind] };
    if (!this.#options.includeEntry || kind === "removed" || kind === "renamed") return event;
    try {
      return { ...event, entry: entryView(await this.#files.stat(posix.join(this.#path, name))) };
    } catch (error) {
      // It was removed again since, or may not be looked at.
      if (["file_not_found", "permission_denied"].includes(asSandboxerError(error).code)) return event;
      throw error;
    }
  }
}

function notRead(): SandboxerError {
  return new SandboxerError("limit_reached", `More than ${MAX_WAITING} events were not read, so some were lost.`, {
    hint: "Read the events faster, or watch fewer files. Then watch the folder again.",
  });
}
