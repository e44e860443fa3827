import type { Transport } from "@sandboxer/client/transport";
import { SandboxerError } from "@sandboxer/protocol/errors";
import { type CallToolResult, McpServer } from "@modelcontextprotocol/server";
import packageFile from "../package.json" with { type: "json" };
import { hintOf } from "./hints.ts";
import { registerResources } from "./resources.ts";
import type { Tool, ToolAnswer } from "./tool.ts";
import { toolsOf, type ToolSet } from "./tools/index.ts";

export interface McpServerOptions {
  readonly transport: Transport;
  readonly tools: ToolSet;
}

const INSTRUCTIONS = `Sandboxes that you can rewind. Begin with sandbox_open, and pass its sandbox_id to the other tools.
Take a checkpoint before anything risky: it saves files, memory and running programs while the sandbox keeps running.
If something went wrong, look at diff and return with rewind. To try several ways, fork, and promote the best one.
A paused sandbox resumes by itself. Errors end with a next step.`;

/** An MCP server whose tools call a sandboxer server. It has no state of its own: one for each request is fine. */
export function createMcpServer({ transport, tools }: McpServerOptions): McpServer {
  const server = new McpServer(
    { name: "sandboxer", title: "sandboxer", version: packageFile.version },
    { instructions: INSTRUCTIONS, capabilities: { tools: {}, resources: {} } },
  );
  for (const tool of toolsOf(tools)) {
    const { name, title, description, input: inputSchema, output: outputSchema, annotations } = tool;
    // Sandboxes are reached through this server only.
    const hints = { ...annotations, openWorldHint: false };
    server.registerTool(name, { title, description, inputSchema, outputSchema, annotations: hints }, (input, context) =>
      runTool(tool, transport, input, context.mcpReq.signal),
    );
  }
  registerResources(server, transport);
  return server;
}

async function runTool(tool: Tool, transport: Transport, input: unknown, signal: AbortSignal): Promise<CallToolResult> {
  try {
    return resultOf(await tool.run({ transport, signal }, input));
  } catch (error) {
    if (error instanceof SandboxerError) return errorOf(error);
    throw error;
  }
}

function resultOf({ structured, text }: ToolAnswer<Record<string, unknown>>): CallToolResult {
  return { content: [{ type: "text", text: text ?? JSON.stringify(structured) }], structuredContent: structured };
}

/** A model reads the text; programs find the code in `_meta`. */
function errorOf(error: SandboxerError): CallToolResult {
  const { code, message, details } = error;
  const hint = hintOf(error);
  return {
    isError: true,
    content: [{ type: "text", text: `${message}\nNext step: ${hint}` }],
    _meta: { "sandboxer/error": { code, message, hint, details } },
  };
}
