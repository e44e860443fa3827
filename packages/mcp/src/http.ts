import { createMcpHandler } from "@modelcontextprotocol/server";
import type { ConnectionOptions } from "@sandboxer/client";
import { Transport } from "@sandboxer/client/transport";
import { createMcpServer } from "./mcp-server.ts";
import type { ToolSet } from "./tools/index.ts";

/** One request to the endpoint, whose caller has been authorized. */
export interface McpHttpCall {
  readonly request: Request;
  /** How to call the sandboxer server as the caller. Calls go to this server only, which relays them if need be. */
  readonly connection: Pick<ConnectionOptions, "url" | "apiKey" | "encryptionKey" | "fetch">;
  readonly tools: ToolSet;
}

export interface McpHttpEndpoint {
  answer(call: McpHttpCall): Promise<Response>;
  /** Ends open responses. */
  close(): Promise<void>;
}

export interface McpHttpOptions {
  readonly maxRequestBytes: number;
  readonly onFailure: (error: Error) => void;
}

/** The most streams that wait for changes. The tools never change, so such a stream only costs memory. */
const MAX_SUBSCRIPTIONS = 100;

/** Short: the caller waits, and can call again. */
const RETRY = { attempts: 3, firstDelayMs: 100 } as const;

/** The endpoint of streamable HTTP, for the current revision and the one before. It checks no keys and no origins. */
export function createMcpEndpoint({ maxRequestBytes, onFailure }: McpHttpOptions): McpHttpEndpoint {
  const calls = new WeakMap<object, McpHttpCall>();
  const handler = createMcpHandler(
    ({ authInfo }) => {
      const call = authInfo === undefined ? undefined : calls.get(authInfo);
      if (call === undefined) throw new Error("The request has no caller.");
      return createMcpServer({ ...call, transport: new Transport({ ...call.connection, relay: true, retry: RETRY }) });
    },
    { maxRequestBodySize: maxRequestBytes, maxSubscriptions: MAX_SUBSCRIPTIONS, onerror: onFailure },
  );
  return {
    answer: (call) => {
      const authInfo = { token: "", clientId: "", scopes: [] };
      calls.set(authInfo, call);
      return handler.fetch(call.request, { authInfo });
    },
    close: () => handler.close(),
  };
}
