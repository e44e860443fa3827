/**
 * Sandboxes of a sandboxer server for the harnesses of Vercel's AI SDK (`@ai-sdk/harness`).
 *
 * ```ts
 * import { sandboxerProvider } from "@sandboxer/ai-sdk";
 *
 * const provider = sandboxerProvider({ url: "http://127.0.0.1:8080", ports: [3000] });
 * const session = await provider.createSession({ sessionId: "conversation-7" });
 * ```
 *
 * A stopped session is a paused sandbox: its files, memory and programs are saved, and `resumeSession` continues them on
 * any server of the store. `session.sandbox` is the SDK's handle, with checkpoints, forks, rewinds and promotions.
 */
export { sandboxerProvider, type SandboxerProvider, type SandboxerProviderOptions } from "./provider.ts";
export type { SandboxerSession } from "./session.ts";
