/**
 * Sandboxes as tools of the Model Context Protocol. `sandboxer mcp` serves them over stdio, and a sandboxer server at
 * `POST /mcp`; this package is for programs that serve them in another way.
 */
export { createMcpEndpoint, type McpHttpCall, type McpHttpEndpoint, type McpHttpOptions } from "./http.ts";
export { serveMcpStdio, type McpStdioOptions } from "./stdio.ts";
export { TOOL_SETS, type ToolSet } from "./tools/index.ts";
