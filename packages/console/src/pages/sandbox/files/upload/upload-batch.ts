import { signal, type ReadonlySignal } from "@preact/signals";
import type { SandboxerError } from "@sandboxer/client";
import { asError } from "../../../../session.ts";
import { tell } from "../../../../ui/toasts.tsx";
import { makeFolder, noteChange } from "../file-calls.ts";
import { joinPath } from "../paths.ts";
import { plainName } from "../visible-name.ts";
import type { UploadItem } from "./gather.ts";
import { sendFile } from "./send-file.ts";

const AT_ONCE = 3;

interface Failure {
  readonly item: UploadItem;
  readonly error: SandboxerError;
}

interface UploadState {
  readonly done: number;
  readonly doneBytes: number;
  readonly failures: readonly Failure[];
  readonly state: "running" | "ended" | "stopped";
}

/** Files and folders that are being uploaded. It continues while the user looks at other pages. */
export class UploadBatch {
  readonly sandboxId: string;
  readonly target: string;
  readonly items: readonly UploadItem[];
  readonly totalBytes: number;
  readonly #end = new AbortController();
  readonly #sentBytes = new Map<UploadItem, number>();
  readonly #state = signal<UploadState>({ done: 0, doneBytes: 0, failures: [], state: "running" });

  constructor(sandboxId: string, target: string, items: readonly UploadItem[]) {
    this.sandboxId = sandboxId;
    this.target = target;
    this.items = items;
    this.totalBytes = items.reduce((sum, { file }) => sum + (file?.size ?? 0), 0);
  }

  get state(): ReadonlySignal<UploadState> {
    return this.#state;
  }

  stop(): void {
    this.#end.abort();
  }

  async run(): Promise<void> {
    const waiting = this.items.values();
    const work = async (): Promise<void> => {
      for (const item of waiting) {
        if (this.#end.signal.aborted) return;
        await this.#put(item);
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, work));
    this.#set({ state: this.#end.signal.aborted ? "stopped" : "ended" });
    noteChange();
    const { state, failures, done } = this.#state.peek();
    // Failures stay visible.
    if (state === "stopped" || failures.length > 0) return;
    dismissUpload(this);
    tell(`Uploaded: ${done} to ${plainName(this.target)}`);
  }

  async #put(item: UploadItem): Promise<void> {
    const path = joinPath(this.target, item.path);
    const { signal: ended } = this.#end;
    const onProgress = (sentBytes: number): void => this.#sent(item, Math.min(sentBytes, item.file?.size ?? 0));
    try {
      if (item.file === undefined) await makeFolder(this.sandboxId, path);
      else await sendFile(this.sandboxId, path, item.file, { signal: ended, onProgress });
      this.#sent(item, item.file?.size ?? 0);
      this.#set({ done: this.#state.peek().done + 1 });
    } catch (thrown) {
      this.#sent(item, 0);
      if (!ended.aborted) this.#set({ failures: [...this.#state.peek().failures, { item, error: asError(thrown) }] });
    }
  }

  #sent(item: UploadItem, bytes: number): void {
    const before = this.#sentBytes.get(item) ?? 0;
    this.#sentBytes.set(item, bytes);
    this.#set({ doneBytes: this.#state.peek().doneBytes + bytes - before });
  }

  #set(change: Partial<UploadState>): void {
    this.#state.value = { ...this.#state.peek(), ...change };
  }
}

const batches = signal<readonly UploadBatch[]>([]);

export function uploadsOf(sandboxId: string): readonly UploadBatch[] {
  return batches.value.filter((batch) => batch.sandboxId === sandboxId);
}

export function startUpload(sandboxId: string, target: string, items: readonly UploadItem[]): void {
  if (items.length === 0) return;
  const batch = new UploadBatch(sandboxId, target, items);
  batches.value = [...batches.value, batch];
  void batch.run();
}

export function dismissUpload(batch: UploadBatch): void {
  batches.value = batches.value.filter((each) => each !== batch);
}
