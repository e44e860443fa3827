import { SandboxerError } from "@sandboxer/protocol";
import type { FolderChange, FolderWatch, FolderWatcher } from "../backend.ts";
import type { AgentConnection } from "./agent-connection.ts";
import { errnoOf } from "./agent-error.ts";
import { Request } from "./frame-types.ts";
import { MalformedFrameError, PayloadWriter } from "./payload.ts";

/** The flags of a CHANGE frame. */
const KINDS: ReadonlyMap<number, FolderChange["kind"]> = new Map([
  [1, "created"],
  [2, "written"],
  [4, "removed"],
  [8, "renamed"],
  [16, "attributes"],
]);
const OF_FOLDER = 32;
const ENDED = 64;
const LOST = 128;
const MAX_NAME_BYTES = 255;
const ENOSYS = 38;

/** The watched folders of one sandbox. The agent gives a folder one number for all its watchers. */
export class AgentWatches {
  readonly #connection: AgentConnection;
  readonly #watchers = new Map<number, Set<FolderWatcher>>();

  constructor(connection: AgentConnection) {
    this.#connection = connection;
  }

  async add(payload: PayloadWriter, watcher: FolderWatcher): Promise<FolderWatch> {
    // Registered before the next frame, which may already be a change.
    const own: FolderWatcher = { onChange: (change) => watcher.onChange(change), onEnd: (why) => watcher.onEnd(why) };
    const number = await this.#connection
      .ask(Request.watch, payload, (reply) => this.#register(reply.u32(), own))
      .catch((error: unknown) => {
        throw errnoOf(error) === ENOSYS ? tooOld(error) : error;
      });
    return { close: () => this.#close(number, own) };
  }

  #register(number: number, watcher: FolderWatcher): number {
    const watchers = this.#watchers.get(number) ?? new Set();
    this.#watchers.set(number, watchers.add(watcher));
    return number;
  }

  #close(number: number, watcher: FolderWatcher): void {
    const watchers = this.#watchers.get(number);
    // Its folder was removed, and the number with it.
    if (watchers?.delete(watcher) !== true) return;
    if (watchers.size === 0) this.#watchers.delete(number);
    this.#connection.send(Request.unwatch, new PayloadWriter().u32(number), { unasked: true });
  }

  /** A change may be on its way when its watch is closed. */
  onChange(number: number, flags: number, name: string): void {
    if (Buffer.byteLength(name) > MAX_NAME_BYTES) throw new MalformedFrameError("a name of a file that is too long");
    if (flags === LOST) return this.#endAll("lost");
    const watchers = [...(this.#watchers.get(number) ?? [])];
    if (flags === ENDED) {
      this.#watchers.delete(number);
      for (const watcher of watchers) watcher.onEnd("folder");
      return;
    }
    const kind = KINDS.get(flags & ~OF_FOLDER);
    if (kind === undefined || name.includes("/")) throw new MalformedFrameError("an unknown change of a folder");
    if (name !== "") {
      for (const watcher of watchers) watcher.onChange({ kind, name, isFolder: (flags & OF_FOLDER) !== 0 });
    } else if (kind === "renamed") {
      // Its path leads elsewhere now; a removal is followed by the end of the watch.
      for (const watcher of watchers) {
        this.#close(number, watcher);
        watcher.onEnd("folder");
      }
    }
  }

  onFailure(): void {
    this.#endAll("sandbox");
  }

  #endAll(why: "lost" | "sandbox"): void {
    for (const [number, watchers] of this.#watchers) {
      for (const watcher of watchers) {
        this.#close(number, watcher);
        watcher.onEnd(why);
      }
    }
  }
}

function tooOld(cause: unknown): SandboxerError {
  return new SandboxerError(
    "not_supported",
    "This sandbox was created by an earlier release and cannot report changes of files.",
    { cause, hint: "Create a new sandbox to watch folders. A resumed sandbox keeps its agent." },
  );
}
