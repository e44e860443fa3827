import type { McpHttpEndpoint } from "@sandboxer/mcp";
import type { Logger } from "pino";
import type { McpEndpointOptions } from "../gateway/mcp/mcp-endpoint.ts";

/** As the JSON bodies of the HTTP API. */
const MAX_REQUEST_BYTES = 8 * 1024 * 1024;

/** Loads the protocol with the first request: most servers never get one. */
export function mcpAnswerer(log: Logger): McpEndpointOptions["answerMcp"] {
  let endpoint: Promise<McpHttpEndpoint> | undefined;
  const load = async (): Promise<McpHttpEndpoint> => {
    const { createMcpEndpoint } = await import("@sandboxer/mcp");
    // Also for requests that are refused because of their own fault.
    const onFailure = (error: Error): void => log.debug({ err: error }, "an MCP request failed");
    return createMcpEndpoint({ maxRequestBytes: MAX_REQUEST_BYTES, onFailure });
  };
  return async (call) => (await (endpoint ??= load())).answer(call);
}
