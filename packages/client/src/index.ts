/**
 * Talks to a sandboxer server over WebSocket, with the WebSocket that Node (22 and newer) and browsers have built in.
 *
 * ```ts
 * import { attach, create } from "@sandboxer/client";
 *
 * const sandbox = await create("http://127.0.0.1:8080", { enable_checkpoint: true });
 * const { stdout, exitCode } = await sandbox.run("python", "print(6 * 7)");
 * await sandbox.checkpoint(); // saved: files, memory, running programs
 *
 * const again = await attach("http://127.0.0.1:8080", sandbox.id, { token: sandbox.token });
 * await again.run("bash", "ls", { onOutput: ({ stream, data }) => process[stream].write(data) });
 * await again.destroy();
 * ```
 *
 * What the server refuses is thrown as a {@link SandboxerError}: `code` is what programs test, `hint` says what to do.
 */
export {
  attach,
  create,
  type AttachOptions,
  type ConnectOptions,
  type SandboxConfiguration,
} from "./session/connect.ts";
export { SandboxSession, type ReconnectOptions, type RunOptions } from "./session/sandbox-session.ts";
export type { ExecutionResult, Output } from "./session/execution-watch.ts";
export { SandboxerError, type ErrorCode, type Language, type ServerEvent, type Status } from "@sandboxer/protocol";
