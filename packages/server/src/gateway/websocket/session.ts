import { CloseCode, parseClientMessage, SandboxerError, asSandboxerError } from "@sandboxer/protocol";
import type { BadMessage, ClientMessage } from "@sandboxer/protocol";
import type { Notice, SandboxClient } from "../../manager/client.ts";
import type { LiveSandbox } from "../../manager/live-sandbox.ts";
import type { SandboxManager } from "../../manager/sandbox-manager.ts";
import type { Actor } from "../access/actor.ts";
import { ExecutionStream, type StreamHooks } from "./execution-stream.ts";
import { sendNotice } from "./notices.ts";
import type { Outbox } from "./outbox.ts";

/** Stdin that a process has not taken yet; a client that sends more is told so instead of filling the memory. */
const MAX_PENDING_STDIN_BYTES = 4 * 1024 * 1024;
/** How long a save waits for the client to confirm what it was sent; what is unconfirmed then is sent again later. */
const CONFIRMATION_MS = 1_000;

/** One client with one sandbox, from `RUNNING` until the socket closes. Messages are handled one at a time. */
export class Session implements SandboxClient {
  readonly #manager: SandboxManager;
  readonly #sandbox: LiveSandbox;
  readonly #outbox: Outbox;
  readonly #actor: Actor;
  #stream: ExecutionStream | undefined;
  #pendingStdinBytes = 0;

  constructor(manager: SandboxManager, sandbox: LiveSandbox, outbox: Outbox, actor: Actor) {
    this.#manager = manager;
    this.#sandbox = sandbox;
    this.#outbox = outbox;
    this.#actor = actor;
  }

  async handle(text: string | undefined): Promise<void> {
    this.#manager.touch(this.#sandbox);
    const message: ClientMessage | BadMessage =
      text === undefined ? { type: "malformed", message: "Messages are text, not binary." } : parseClientMessage(text);
    try {
      await this.#manager.untilThawed(this.#sandbox);
      await this.#act(message);
    } catch (error) {
      this.#outbox.error("ERROR", asSandboxerError(error));
    }
  }

  notify(notice: Notice): void {
    if (notice.type !== "saving" && notice.type !== "deleting") this.end();
    sendNotice(this.#outbox, notice);
  }

  /** Sends no more output and waits until the client has what was sent, so that a save knows what was not seen. */
  async quiesce(): Promise<void> {
    this.end();
    await this.#outbox.settled(CONFIRMATION_MS);
  }

  /** Stops sending. The execution itself goes on. */
  end(): void {
    this.#stream?.stop();
  }

  #act(message: ClientMessage | BadMessage): Promise<void> | void {
    switch (message.type) {
      case "execute":
        return this.#execute(message);
      case "stdin":
        return this.#stdin(message.data);
      case "checkpoint":
        return this.#checkpoint();
      case "snapshot_filesystem":
        return this.#snapshotFilesystem(message.name);
      case "kill_process":
        return this.#killProcess();
      case "kill_sandbox":
        return this.#killSandbox();
      case "reconnect":
        return this.#reconnect(message);
      case "malformed":
        return this.#refuse("EXECUTION_ERROR", message.message);
      case "unsupported":
        return this.#refuse("EXECUTION_UNSUPPORTED_LANGUAGE_ERROR", message.message);
      case "stdin_without_data":
        return this.#outbox.error("STDIN_ERROR", new SandboxerError("bad_request", message.message));
      case "snapshot_without_name":
        this.#outbox.status("FILESYSTEM_SNAPSHOT_CREATING");
        return this.#outbox.error("FILESYSTEM_SNAPSHOT_ERROR", new SandboxerError("bad_request", message.message));
    }
  }

  /** Whether the client still has to expect an EXECUTION_DONE. */
  get #executing(): boolean {
    return this.#stream?.active === true || this.#sandbox.executing;
  }

  async #execute({ language, code }: Extract<ClientMessage, { type: "execute" }>): Promise<void> {
    try {
      if (this.#executing) throw new SandboxerError("execution_in_progress", "An execution is already in progress.");
      const execution = await this.#recorded("execute", () => this.#manager.execute(this.#sandbox, language, code));
      this.#outbox.status("EXECUTION_RUNNING", { execution_id: execution.id });
      this.#follow(new ExecutionStream(execution, this.#outbox, undefined, this.#hooks));
    } catch (error) {
      this.#outbox.error("EXECUTION_ERROR", asSandboxerError(error));
      if (!this.#executing) this.#outbox.status("EXECUTION_DONE");
    }
  }

  #refuse(status: "EXECUTION_ERROR" | "EXECUTION_UNSUPPORTED_LANGUAGE_ERROR", text: string): void {
    this.#outbox.error(status, new SandboxerError("bad_request", text));
    if (!this.#executing) this.#outbox.status("EXECUTION_DONE");
  }

  /** Not waited for: a process that reads nothing must not keep a kill from being heard. */
  #stdin(data: string): void {
    const { execution } = this.#sandbox;
    if (execution === undefined || !execution.running) {
      return this.#outbox.error(
        "EXECUTION_ERROR",
        new SandboxerError("wrong_state", "No process is running in the sandbox."),
      );
    }
    const bytes = Buffer.from(data, "utf8");
    if (this.#pendingStdinBytes + bytes.length > MAX_PENDING_STDIN_BYTES) {
      return this.#outbox.error(
        "STDIN_ERROR",
        new SandboxerError("too_large", "The process does not read its stdin; what was sent before still waits."),
      );
    }
    this.#pendingStdinBytes += bytes.length;
    execution
      .writeStdin(bytes)
      .catch((error: unknown) => {
        if (execution.running) this.#outbox.error("STDIN_ERROR", asSandboxerError(error));
      })
      .finally(() => (this.#pendingStdinBytes -= bytes.length));
  }

  async #checkpoint(): Promise<void> {
    const { durable, facts } = this.#sandbox;
    this.#outbox.status("CHECKPOINTING");
    try {
      if (durable && this.#executing) {
        throw new SandboxerError("execution_in_progress", "Cannot checkpoint while an execution is in progress.");
      }
      await this.#outbox.settled(CONFIRMATION_MS);
      await this.#recorded("checkpoint", () => this.#manager.checkpoint(this.#sandbox));
      if (facts.flags.enable_sandbox_handoff) {
        this.#outbox.status("LOCK_RELEASING");
        this.#outbox.status("LOCK_RELEASED");
      }
      this.#outbox.status("CHECKPOINTED");
      this.#outbox.close(CloseCode.normal);
    } catch (thrown) {
      const error = asSandboxerError(thrown);
      if (error.code === "execution_in_progress") return this.#outbox.error("EXECUTION_IN_PROGRESS_ERROR", error);
      this.#outbox.error("CHECKPOINT_ERROR", error);
      this.#outbox.close(CloseCode.applicationError);
    }
  }

  async #snapshotFilesystem(name: string): Promise<void> {
    this.#outbox.status("FILESYSTEM_SNAPSHOT_CREATING");
    try {
      await this.#recorded("snapshot_filesystem", () => this.#manager.snapshots.captureFilesystem(this.#sandbox, name));
      this.#outbox.status("FILESYSTEM_SNAPSHOT_CREATED");
    } catch (error) {
      this.#outbox.error("FILESYSTEM_SNAPSHOT_ERROR", asSandboxerError(error));
    }
  }

  async #killProcess(): Promise<void> {
    const stream = this.#stream;
    const { execution } = this.#sandbox;
    try {
      if (stream?.active === true && stream.execution.running)
        return await this.#recorded("kill_process", () => stream.kill());
      if (execution?.running !== true) return this.#outbox.status("EXECUTION_FORCE_KILLED");
      // A client that has not asked for the output hears of the end alone.
      await this.#recorded("kill_process", () => execution.kill());
      this.#outbox.status("EXECUTION_FORCE_KILLED");
      const { code, outputEnd } = await execution.exited;
      execution.confirm(outputEnd);
      execution.markDoneDelivered();
      this.#outbox.status("EXECUTION_DONE", { execution_id: execution.id, exit_code: code ?? null });
    } catch (error) {
      this.#outbox.error("EXECUTION_FORCE_KILL_ERROR", asSandboxerError(error));
    }
  }

  async #killSandbox(): Promise<void> {
    this.#outbox.status("KILLING");
    this.#outbox.status("DELETING");
    try {
      this.end();
      await this.#recorded("kill_sandbox", () => this.#manager.destroy(this.#sandbox));
      if (this.#sandbox.facts.flags.enable_sandbox_handoff) {
        this.#outbox.status("LOCK_RELEASING");
        this.#outbox.status("LOCK_RELEASED");
      }
      this.#outbox.status("DELETED");
      this.#outbox.status("KILLED");
      this.#outbox.close(CloseCode.normal);
    } catch (error) {
      this.#outbox.error("KILL_ERROR", asSandboxerError(error));
    }
  }

  #reconnect({ executionId, offset }: Extract<ClientMessage, { type: "reconnect" }>): void {
    const { execution } = this.#sandbox;
    // An offset belongs to the execution that it was read from.
    const from = executionId === undefined || executionId === execution?.id ? offset : undefined;
    const nothingLeft = execution?.running === false && execution.doneDelivered && from === undefined;
    if (execution === undefined || nothingLeft) {
      const code = execution?.exit?.code;
      return this.#outbox.status("EXECUTION_DONE", code === undefined ? {} : { exit_code: code });
    }
    // What was sent on this socket arrives before anything that is sent now, confirmed or not.
    const sent = this.#stream?.execution === execution ? this.#stream.sentTo : undefined;
    this.#stream?.stop();
    this.#outbox.status("EXECUTION_RUNNING", { execution_id: execution.id });
    this.#follow(new ExecutionStream(execution, this.#outbox, from ?? sent, this.#hooks));
  }

  /** Does it, and leaves a line in the audit log. */
  #recorded<Result>(what: string, action: () => Promise<Result>): Promise<Result> {
    const { id } = this.#sandbox;
    return this.#actor.does(what, { sandboxId: id, epoch: this.#manager.epochOf(id) }, action);
  }

  #follow(stream: ExecutionStream): void {
    this.#stream = stream;
  }

  readonly #hooks: StreamHooks = {
    hold: () => (this.#manager.isFrozen(this.#sandbox) ? this.#manager.untilThawed(this.#sandbox) : undefined),
    onOutput: (bytes) => this.#manager.countOutput(bytes),
  };
}
