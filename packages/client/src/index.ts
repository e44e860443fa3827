/**
 * Talks to a sandboxer server, from Node (22 and newer) and from browsers.
 *
 * ```ts
 * import { Sandbox } from "@sandboxer/client";
 *
 * await using sandbox = await Sandbox.create();
 * const { stdout, exitCode } = await sandbox.exec("echo hello");
 * ```
 *
 * Errors are {@link SandboxerError}s: programs test `code`, and `hint` says what to do. `create` and `attach` use the
 * WebSocket protocol of one session (docs/reference/websocket.md); docs/reference/sdk.md describes everything else.
 */
export { Sandbox } from "./sandbox.ts";
export type { ClientOptions, CreateOptions, RestoreOptions } from "./sandbox-options.ts";
export { compareSandboxes, type ComparedSandbox, type CompareOptions, type Comparison } from "./compare.ts";
export { Sandboxer } from "./sandboxer.ts";
export { Execution } from "./process/execution.ts";
export { SandboxProcess, type ExecResult, type PtySize } from "./process/process.ts";
export type { Command, ExecOptions, SpawnOptions } from "./process/start.ts";
export type { OutputChunk } from "./process/frames.ts";
export type { OutputLine } from "./process/lines.ts";
export type { ConnectionState, ExitStatus } from "./process/process-link.ts";
export type { AttachProcessOptions, PtyOptions } from "./processes.ts";
export {
  Interpreter,
  type ContextOptions,
  type InterpreterOptions,
  type RunCellOptions,
} from "./interpreter/interpreter.ts";
export type {
  CellError,
  CellEvent,
  CellExecution,
  CellResult,
  CellStatus,
  CellTable,
} from "./interpreter/cell-types.ts";
export { SandboxFiles, type ReadOptions, type UploadResult, type WriteOptions } from "./sandbox-files.ts";
export { Images } from "./images.ts";
export { Snapshots } from "./snapshots.ts";
export type { EventOptions } from "./events.ts";
export type { LongCallOptions, SandboxHandleOptions } from "./long-call.ts";
export type * from "./records.ts";
export type { Bytes, CallInput, CallOptions, WireOptions } from "./wire/call-types.ts";
export type { RetryOptions } from "./wire/retry.ts";
export type { ConnectionOptions } from "./wire/transport.ts";

export {
  attach,
  create,
  type AttachOptions,
  type ConnectOptions,
  type SandboxConfiguration,
} from "./session/connect.ts";
export { SandboxSession, type ReconnectOptions, type RunOptions } from "./session/sandbox-session.ts";
export type { ExecutionResult, Output } from "./session/execution-watch.ts";
export { SandboxerError, type ErrorCode } from "@sandboxer/protocol/errors";
export type { ContextLanguage, Language, ServerEvent, Status } from "@sandboxer/protocol";
