import { mkdir, open, rm, stat, type FileHandle } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { SandboxerError } from "@sandboxer/protocol";
import { z } from "zod";
import { RunscError, type AttachedRunsc, type Runsc } from "../runsc.ts";
import {
  ControlFailure,
  NotDelivered,
  NotTaken,
  sendControlMessage,
  type ControlMessage,
  type ControlOptions,
} from "./control-socket.ts";
import type { PagesSupply } from "./pages-supply.ts";
import type { Dialect } from "./known-builds.ts";

/** The files of a checkpoint with `--compression=none`: the object graph, and the memory with its index. */
export const PAGES_MEMBER = "pages.img";
export const ENGINE_MEMBERS = ["checkpoint.img", "pages_meta.img", PAGES_MEMBER];

const COMMAND_MS = 120_000;
const LOOK_MS = 25;
/** The exit code of runsc when the kernel reports a failure. */
const FAILED = 128;

export interface EngineControlParts {
  readonly runsc: Pick<Runsc, "command">;
  readonly containerId: string;
  readonly stateDirectory: string;
  readonly messages: Messages | undefined;
  /** The memory in the image that is restored; 0: a fresh start. */
  readonly pagesBytes: number;
}

/** How a sandbox is driven by messages. */
export interface Messages {
  readonly dialect: Dialect;
  /** The agent binary of this server, which sends files. */
  readonly sender: string;
  readonly pages: Pick<PagesSupply, "take" | "saved" | "clear">;
  /** For the self-test: a message that the kernel does not take is an error, and not sent again as a command. */
  readonly only?: boolean;
}

/**
 * Drives the kernel of one sandbox: by messages on its control socket, which take less than a millisecond, and
 * otherwise by runsc commands, which send the same messages and take 20 ms. A command follows a message only if the
 * message did nothing.
 */
export class EngineControl {
  readonly #parts: EngineControlParts;
  /** runsc refuses to resume what it has not paused. */
  #pausedBy: "message" | "command" | undefined;
  /** The memory in the newest checkpoint. */
  #pagesBytes: number;

  constructor(parts: EngineControlParts) {
    this.#parts = parts;
    this.#pagesBytes = parts.pagesBytes;
  }

  async pause(): Promise<void> {
    await this.#either(
      async () => {
        await this.#send("pause", { method: "containerManager.Pause", argument: null });
        this.#pausedBy = "message";
      },
      async () => {
        await this.#parts.runsc.command(["pause", this.#parts.containerId]);
        this.#pausedBy = "command";
      },
    );
  }

  async resume(): Promise<void> {
    if (this.#pausedBy === "command") await this.#parts.runsc.command(["resume", this.#parts.containerId]);
    else await this.#send("resume", { method: "containerManager.Resume", argument: null });
    this.#pausedBy = undefined;
  }

  /**
   * Writes a checkpoint into a folder that does not exist yet, and leaves the sandbox running. The files are complete
   * after the returned function; the sandbox need not wait for it.
   */
  checkpoint(folder: string, options: ControlOptions): Promise<() => Promise<void>> {
    const { runsc, containerId } = this.#parts;
    return this.#either(
      (messages) => this.#checkpointByMessage(messages, folder, options),
      async () => {
        await rm(folder, { recursive: true, force: true });
        const command = ["checkpoint", "--leave-running", "--compression=none", `--image-path=${folder}`, containerId];
        await runsc.command(command, options);
        return async () => {};
      },
    );
  }

  /** Removes what was prepared for saves: the disk is full. */
  async freeSpace(): Promise<void> {
    await this.#parts.messages?.pages.clear();
  }

  /** Resolves when runsc has loaded an image. Its agent is silent until it is asked. */
  async untilLoaded({ child }: Pick<AttachedRunsc, "child">, options: ControlOptions): Promise<void> {
    const deadlineMs = performance.now() + options.timeoutMs;
    while (child.exitCode === null && child.signalCode === null && performance.now() < deadlineMs) {
      options.signal?.throwIfAborted();
      const timeoutMs = Math.ceil(deadlineMs - performance.now());
      if (await this.#hasLoaded({ ...options, timeoutMs }).catch(() => false)) return;
      await delay(LOOK_MS);
    }
    throw new SandboxerError("backend_unavailable", "The engine did not load the image.");
  }

  async #hasLoaded(options: ControlOptions): Promise<boolean> {
    const { runsc, containerId } = this.#parts;
    const byCommand = async (): Promise<boolean> =>
      State.parse(JSON.parse(await runsc.command(["state", containerId], options))).status === "running";
    return this.#either(async ({ dialect: { waitForRestore: method } }) => {
      if (method === undefined) return byCommand();
      try {
        // Fails until the restore has begun.
        await this.#send("state", { method, argument: null }, options);
        return true;
      } catch (error) {
        // There is no socket yet.
        if (error instanceof NotDelivered) return false;
        throw error;
      }
    }, byCommand);
  }

  async #checkpointByMessage(
    { sender, pages: supply }: Messages,
    folder: string,
    options: ControlOptions,
  ): Promise<() => Promise<void>> {
    await mkdir(folder, { mode: 0o700 });
    const prepared = await supply.take(join(folder, PAGES_MEMBER), this.#pagesBytes);
    const opened: FileHandle[] = [];
    try {
      for (const name of ENGINE_MEMBERS) {
        const flags = name === PAGES_MEMBER && prepared !== undefined ? "r+" : "wx+";
        opened.push(await open(join(folder, name), flags, 0o600));
      }
      const argument = { metadata: { compression: "none" }, have_pages_file: true, Resume: true };
      const files = { descriptors: opened.map(({ fd }) => fd), sender };
      await this.#send("checkpoint", { method: "containerManager.Checkpoint", argument, files }, options);
    } finally {
      await Promise.all(opened.map((file) => file.close()));
    }
    return async () => {
      await prepared?.cut();
      this.#pagesBytes = await pagesBytesIn(folder);
      supply.saved(this.#pagesBytes);
    };
  }

  async #either<Result>(
    byMessage: (messages: Messages) => Promise<Result>,
    byCommand: () => Promise<Result>,
  ): Promise<Result> {
    const { messages } = this.#parts;
    if (messages === undefined) return byCommand();
    try {
      return await byMessage(messages);
    } catch (error) {
      if (!(error instanceof NotTaken) || messages.only === true) throw error;
      return byCommand();
    }
  }

  /** A failure that the kernel reports is the error that the command would be. */
  async #send(command: string, message: ControlMessage, options: Partial<ControlOptions> = {}): Promise<void> {
    const { stateDirectory, containerId } = this.#parts;
    const path = join(stateDirectory, `runsc-${containerId}.sock`);
    try {
      await sendControlMessage(path, message, { timeoutMs: COMMAND_MS, ...options });
    } catch (error) {
      throw error instanceof ControlFailure ? new RunscError(command, FAILED, error.message) : error;
    }
  }
}

const State = z.looseObject({ status: z.string() });

/** The memory in an image; 0 if it is unknown. */
export async function pagesBytesIn(imageDirectory: string): Promise<number> {
  return (await stat(join(imageDirectory, PAGES_MEMBER)).catch(() => undefined))?.size ?? 0;
}
