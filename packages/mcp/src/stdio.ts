import type { Readable, Writable } from "node:stream";
import { serveStdio, StdioServerTransport } from "@modelcontextprotocol/server/stdio";
import type { Transport } from "@sandboxer/client/transport";
import { createMcpServer } from "./mcp-server.ts";
import type { ToolSet } from "./tools/index.ts";

export interface McpStdioOptions {
  readonly transport: Transport;
  readonly tools: ToolSet;
  readonly stdin: Readable;
  readonly stdout: Writable;
  /** Ends it. It also ends when stdin does. */
  readonly signal?: AbortSignal;
  readonly onFailure: (error: Error) => void;
}

/** The longest message: a file of 4 MB in base64, with room for the rest. */
const MAX_MESSAGE_BYTES = 10 * 1024 * 1024;

/** Serves MCP on a pair of streams, until the client closes them. */
export async function serveMcpStdio(options: McpStdioOptions): Promise<void> {
  const { stdin, stdout, signal, onFailure } = options;
  const ended = Promise.withResolvers<void>();
  for (const event of ["end", "close", "error"]) stdin.once(event, () => ended.resolve());
  stdout.once("error", () => ended.resolve());
  signal?.addEventListener("abort", () => ended.resolve(), { once: true });
  const transport = new StdioServerTransport(stdin, stdout, { maxBufferSize: MAX_MESSAGE_BYTES });
  const served = serveStdio(() => createMcpServer(options), { transport, onerror: onFailure });
  await ended.promise;
  await served.close();
}
