import { spawn } from "node:child_process";
import { randomBytes, randomUUID } from "node:crypto";
import { open, rename, rm, statfs } from "node:fs/promises";
import { join } from "node:path";
import type { Clock } from "../../../support/clock.ts";

const PAGE_BYTES = 4096;
/** For less memory it makes no difference. */
const MIN_BYTES = 8 * 1024 * 1024;
const MAX_FILES = 4;
/** Files are prepared for saves that follow each other within this time, and removed after it. */
const WINDOW_MS = 300_000;
/** With less free space than this part of the disk, there are none. */
const FREE_PART = 0.1;

export interface PagesSupplyOptions {
  /** On the disk where sandboxes are saved. */
  readonly folder: string;
  /** The agent binary of this server, which fills files. */
  readonly filler: string;
  /** The limit of all files together. */
  readonly maxBytes: number;
  readonly clock: Clock;
}

/** A file in which every page is the mark. */
interface Prepared {
  readonly path: string;
  readonly sizeBytes: number;
  readonly mark: Buffer;
}

/** A file for the engine to write memory pages to. */
export interface PagesFile {
  /** Cuts the file behind what the engine has written. */
  cut(): Promise<void>;
}

/**
 * Files for memory pages, prepared ahead: everything in a sandbox waits while the engine writes its memory, and to a
 * file whose pages are in the page cache it writes in a half of the time.
 *
 * Every page of such a file is one random mark. The engine writes from the start to the end without gaps, so the first
 * page that is still the mark is where its pages end. A file is used once: it belongs to the image then.
 */
export class PagesSupply {
  readonly #options: PagesSupplyOptions;
  #files: Prepared[] = [];
  #preparing: Promise<void> | undefined;
  #savedMs = -Infinity;
  readonly #stop = new AbortController();
  /** Aborts the wait for the end of the time since the last save. */
  #again = new AbortController();

  constructor(options: PagesSupplyOptions) {
    this.#options = options;
  }

  /** Moves a file for about this much memory to `path`. Undefined: there is none. */
  async take(path: string, wantedBytes: number): Promise<PagesFile | undefined> {
    const fitting = this.#files.filter(({ sizeBytes }) => sizeBytes >= wantedBytes && sizeBytes <= 2 * wantedBytes);
    const [chosen] = fitting.toSorted((left, right) => left.sizeBytes - right.sizeBytes);
    if (chosen === undefined) return undefined;
    this.#files = this.#files.filter((each) => each !== chosen);
    try {
      await rename(chosen.path, path);
    } catch {
      // The save is on another disk.
      await rm(chosen.path, { force: true });
      return undefined;
    }
    return { cut: () => cutAtMark(path, chosen.mark) };
  }

  /** So much memory was saved: the next save may be as large. */
  saved(sizeBytes: number): void {
    const nowMs = this.#options.clock.monotonicMs();
    const isOften = nowMs - this.#savedMs < WINDOW_MS;
    this.#savedMs = nowMs;
    if (this.#stop.signal.aborted) return;
    this.#clearAfterWindow();
    if (!isOften || sizeBytes < MIN_BYTES) return;
    // Some room for growth. A file that is too small is extended.
    const wanted = Math.ceil((sizeBytes * 1.05) / PAGE_BYTES) * PAGE_BYTES;
    this.#preparing ??= this.#prepare(wanted)
      .catch(() => {})
      .finally(() => (this.#preparing = undefined));
  }

  /** After the file that is being prepared, if any. */
  async settled(): Promise<void> {
    await this.#preparing;
  }

  /** Removes all files: their space is needed. */
  async clear(): Promise<void> {
    const files = this.#files;
    this.#files = [];
    await Promise.all(files.map(({ path }) => rm(path, { force: true })));
  }

  async close(): Promise<void> {
    this.#stop.abort();
    await this.#preparing;
    await this.clear();
  }

  async #prepare(sizeBytes: number): Promise<void> {
    const { folder, maxBytes, filler } = this.#options;
    const { signal } = this.#stop;
    const takenBytes = this.#files.reduce((sum, file) => sum + file.sizeBytes, sizeBytes);
    const disk = await statfs(folder);
    const isShort = disk.bavail * disk.bsize - sizeBytes < disk.blocks * disk.bsize * FREE_PART;
    if (this.#files.length === MAX_FILES || takenBytes > maxBytes || isShort) return;
    const file = { path: join(folder, `${randomUUID()}.pages`), sizeBytes, mark: randomBytes(PAGE_BYTES) };
    try {
      await fill(file, filler, signal);
      signal.throwIfAborted();
    } catch (error) {
      await rm(file.path, { force: true });
      throw error;
    }
    this.#files.push(file);
  }

  #clearAfterWindow(): void {
    this.#again.abort();
    this.#again = new AbortController();
    const signal = AbortSignal.any([this.#again.signal, this.#stop.signal]);
    void this.#options.clock.sleep(WINDOW_MS, signal).then(
      () => this.clear(),
      () => {},
    );
  }
}

async function fill({ path, sizeBytes, mark }: Prepared, filler: string, signal: AbortSignal): Promise<void> {
  const file = await open(path, "wx", 0o600);
  try {
    const stdio = ["pipe" as const, "ignore" as const, "ignore" as const, file.fd];
    const child = spawn(filler, ["fill-file", String(sizeBytes)], { stdio, env: {}, signal, killSignal: "SIGKILL" });
    child.stdin?.on("error", () => {}).end(mark);
    const code = await new Promise((resolve) => child.once("error", resolve).once("exit", resolve));
    if (code !== 0) throw new Error(`The file could not be filled (${String(code)}).`);
  } finally {
    await file.close();
  }
}

async function cutAtMark(path: string, mark: Buffer): Promise<void> {
  const file = await open(path, "r+");
  try {
    const { size } = await file.stat();
    const page = Buffer.alloc(PAGE_BYTES);
    // Pages below `written` are the engine's, those from `end` on are marks.
    let [written, end] = [0, Math.ceil(size / PAGE_BYTES)];
    while (written < end) {
      const middle = Math.floor((written + end) / 2);
      const { bytesRead } = await file.read(page, 0, PAGE_BYTES, middle * PAGE_BYTES);
      if (bytesRead === PAGE_BYTES && page.equals(mark)) end = middle;
      else written = middle + 1;
    }
    if (written * PAGE_BYTES < size) await file.truncate(written * PAGE_BYTES);
  } finally {
    await file.close();
  }
}
