import { CloseCode, parseClientMessage, SandboxerError, asSandboxerError } from "@sandboxer/protocol";
import type { BadMessage, ClientMessage, OutputFrame, ServerEvent, Status, StatusName } from "@sandboxer/protocol";
import type { Notice, SandboxClient } from "../../manager/client.ts";
import type { Sandbox } from "../../manager/sandbox.ts";
import type { ManagedProcess } from "../../manager/processes/managed-process.ts";
import type { SandboxManager } from "../../manager/sandbox-manager.ts";
import type { Actor } from "../access/actor.ts";
import { JoinedOutput } from "./joined-output.ts";
import { sendNotice } from "./notices.ts";
import { statusOf, type Outbox } from "./outbox.ts";

/**
 * Limit of stdin that a process has not read yet; a client that sends more gets an error instead of filling the memory.
 */
const MAX_PENDING_STDIN_BYTES = 4 * 1024 * 1024;
/** How long a save waits for the client to confirm its output; unconfirmed output is sent again later. */
const CONFIRMATION_MS = 1_000;

/** An execution whose output is being sent. */
interface Stream {
  readonly execution: ManagedProcess;
  readonly stop: AbortController;
  /** The offset up to which output was sent; undefined before the first. */
  sentTo: number | undefined;
  /** The client is told of the kill after the last output. */
  killed: boolean;
}

/** One client with one sandbox, from `RUNNING` until the socket closes. Messages are handled one at a time. */
export class Session implements SandboxClient {
  readonly #manager: SandboxManager;
  readonly #sandbox: Sandbox;
  readonly #outbox: Outbox;
  readonly #actor: Actor;
  #stream: Stream | undefined;
  #pendingStdinBytes = 0;

  constructor(manager: SandboxManager, sandbox: Sandbox, outbox: Outbox, actor: Actor) {
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

  /** Stops sending output and waits until the client has what was sent, so that a save knows the unseen part. */
  async quiesce(): Promise<void> {
    this.end();
    await this.#outbox.settled(CONFIRMATION_MS);
  }

  /** Stops sending. The execution itself keeps running. */
  end(): void {
    this.#stream?.stop.abort();
  }

  #act(message: ClientMessage | BadMessage): Promise<void> | void {
    switch (message.type) {
      case "execute":
        return this.#execute(message);
      case "stdin":
        return this.#stdin(message.data);
      case "checkpoint":
        return this.#pause();
      case "snapshot_filesystem":
        return this.#snapshotFilesystem(message.name);
      case "kill_process":
        return this.#killProcess();
      case "kill_sandbox":
        return this.#killSandbox();
      case "reconnect":
        return this.#reconnect(message);
      case "malformed":
        return this.#refuse("EXECUTION_ERROR", new SandboxerError("bad_request", message.message));
      case "unsupported":
        return this.#refuse("EXECUTION_UNSUPPORTED_LANGUAGE_ERROR", new SandboxerError("bad_request", message.message));
      case "stdin_without_data":
        return this.#outbox.error("STDIN_ERROR", new SandboxerError("bad_request", message.message));
      case "snapshot_without_name":
        this.#outbox.status("FILESYSTEM_SNAPSHOT_CREATING");
        return this.#outbox.error("FILESYSTEM_SNAPSHOT_ERROR", new SandboxerError("bad_request", message.message));
    }
  }

  async #execute({ language, code }: Extract<ClientMessage, { type: "execute" }>): Promise<void> {
    try {
      this.#follow(await this.#recorded("execute", () => this.#manager.execute(this.#sandbox, language, code)));
    } catch (error) {
      this.#refuse("EXECUTION_ERROR", asSandboxerError(error));
    }
  }

  #refuse(status: "EXECUTION_ERROR" | "EXECUTION_UNSUPPORTED_LANGUAGE_ERROR", error: SandboxerError): void {
    this.#outbox.error(status, error);
    if (!this.#sandbox.processes.executing) this.#outbox.status("EXECUTION_DONE");
  }

  /** Not awaited: a process that reads nothing must not delay a kill. */
  #stdin(data: string): void {
    const { execution } = this.#sandbox.processes;
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
        new SandboxerError("too_large", "The process does not read its stdin; earlier input is still waiting."),
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

  async #pause(): Promise<void> {
    this.#outbox.status("CHECKPOINTING");
    try {
      await this.#recorded("checkpoint", () => this.#manager.pause(this.#sandbox, { byClient: true }));
      if (this.#sandbox.facts.flags.enable_sandbox_handoff) {
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
    const { execution } = this.#sandbox.processes;
    const stream = execution?.followed === true ? this.#stream : undefined;
    try {
      if (execution?.running !== true) return this.#outbox.status("EXECUTION_FORCE_KILLED");
      if (stream !== undefined) stream.killed = true;
      await this.#recorded("kill_process", () => execution.kill());
      if (stream !== undefined) return;
      // A client that has not asked for the output is told of the end alone.
      this.#outbox.status("EXECUTION_FORCE_KILLED");
      const { code, outputEnd } = await execution.exited;
      execution.acknowledge(outputEnd);
      execution.told = true;
      this.#outbox.status("EXECUTION_DONE", { execution_id: execution.id, exit_code: code ?? null });
    } catch (error) {
      if (stream !== undefined) stream.killed = false;
      this.#outbox.error("EXECUTION_FORCE_KILL_ERROR", asSandboxerError(error));
    }
  }

  async #killSandbox(): Promise<void> {
    this.#outbox.status("KILLING");
    this.#outbox.status("DELETING");
    try {
      this.end();
      const removed = await this.#recorded("kill_sandbox", () => this.#manager.destroy(this.#sandbox));
      if (this.#sandbox.facts.flags.enable_sandbox_handoff) {
        this.#outbox.status("LOCK_RELEASING");
        this.#outbox.status("LOCK_RELEASED");
      }
      this.#outbox.status("DELETED", removed);
      this.#outbox.status("KILLED");
      this.#outbox.close(CloseCode.normal);
    } catch (error) {
      this.#outbox.error("KILL_ERROR", asSandboxerError(error));
    }
  }

  #reconnect({ executionId, offset }: Extract<ClientMessage, { type: "reconnect" }>): void {
    const { execution } = this.#sandbox.processes;
    // An offset belongs to the execution that it was read from.
    const from = executionId === undefined || executionId === execution?.id ? offset : undefined;
    const nothingLeft = execution?.running === false && execution.told && from === undefined;
    if (execution === undefined || nothingLeft) {
      const code = execution?.exit?.code;
      return this.#outbox.status("EXECUTION_DONE", code === undefined ? {} : { exit_code: code });
    }
    // Data already sent on this socket arrives before anything that is sent now, confirmed or not.
    const sent = this.#stream?.execution === execution ? this.#stream.sentTo : undefined;
    this.end();
    this.#follow(execution, from ?? sent);
  }

  /** Runs an action and writes an audit line. */
  #recorded<Result>(what: string, action: () => Promise<Result>): Promise<Result> {
    const { id } = this.#sandbox;
    return this.#actor.does(what, { sandboxId: id, epoch: this.#manager.epochOf(id) }, action);
  }

  /** Sends an execution's output from an offset until its end. */
  #follow(execution: ManagedProcess, from = execution.acknowledged): void {
    this.#outbox.status("EXECUTION_RUNNING", { execution_id: execution.id });
    this.#stream = { execution, stop: new AbortController(), sentTo: undefined, killed: false };
    void this.#send(this.#stream, from).catch(() => {
      // The sandbox is being saved or has ended; the manager tells the client.
    });
  }

  async #send(sending: Stream, from: number): Promise<void> {
    const { execution, stop } = sending;
    // A flat copy: the id may be a slice of another string, and V8 serializes objects with slices at a third of the
    // speed.
    const execution_id = Buffer.from(execution.id).toString();
    const sendChunk = ({ stream, offset, data }: OutputFrame): void => {
      if (stop.signal.aborted) return;
      const end = offset + data.length;
      sending.sentTo = end;
      this.#manager.countOutput(data.length);
      const event: ServerEvent = { event: stream, data: text(data), execution_id, offset: end };
      this.#outbox.sendConfirmed([event], () => execution.acknowledge(end));
    };
    const output = new JoinedOutput(sendChunk);
    const onEnd = ({ code }: { readonly code: number | undefined }): void => {
      output.flush();
      const done = { ...status("EXECUTION_DONE"), execution_id, exit_code: code ?? null };
      const end = sending.killed ? [status("EXECUTION_FORCE_KILLED"), done] : [done];
      this.#outbox.sendConfirmed(end, () => (execution.told = true));
    };
    for await (const chunk of execution.follow({ from, signal: stop.signal, onEnd })) {
      output.take(chunk);
      await this.#outbox.drained();
    }
  }
}

function status(name: StatusName): { readonly event: "status_update"; readonly status: Status } {
  return { event: "status_update", status: statusOf(name) };
}

/** Chunks contain whole characters; invalid bytes are replaced. */
function text(data: Uint8Array): string {
  return Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString("utf8");
}
