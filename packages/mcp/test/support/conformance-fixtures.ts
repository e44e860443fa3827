import { createMcpHandler, McpServer, ResourceTemplate } from "@modelcontextprotocol/server";
import type { McpEndpointOptions } from "../../../server/src/gateway/mcp/mcp-endpoint.ts";

const PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==";
const WAV = "UklGRiQAAABXQVZFZm10IBAAAAABAAEARKwAAIhYAQACABAAZGF0YQAAAAA=";
const IMAGE = { type: "image", data: PNG, mimeType: "image/png" } as const;

function textOf(text: string) {
  return { type: "text", text } as const;
}

function resourceOf(uri: string, mimeType: string, text: string) {
  return { type: "resource", resource: { uri, mimeType, text } } as const;
}

/** The tools and resources that the conformance runner calls by name, so that it sees every kind of answer. */
function fixtures(): McpServer {
  const server = new McpServer({ name: "fixtures", version: "1" }, { capabilities: { logging: {} } });
  const tool = (name: string, content: Parameters<typeof answer>[0]): void =>
    void server.registerTool(name, { description: name }, async () => answer(content));
  const answer = (content: (ReturnType<typeof textOf | typeof resourceOf> | typeof IMAGE)[]) => ({ content });
  tool("test_simple_text", [textOf("This is a simple text response for testing.")]);
  tool("test_image_content", [IMAGE]);
  tool("test_embedded_resource", [
    resourceOf("test://embedded-resource", "text/plain", "This is an embedded resource content."),
  ]);
  tool("test_multiple_content_types", [
    textOf("Multiple content types test:"),
    IMAGE,
    resourceOf("test://mixed-content-resource", "application/json", '{"test":"data","value":123}'),
  ]);
  server.registerTool("test_audio_content", { description: "audio" }, async () => ({
    content: [{ type: "audio", data: WAV, mimeType: "audio/wav" }],
  }));
  server.registerTool("test_error_handling", { description: "an error" }, async () => {
    throw new Error("This tool intentionally returns an error for testing");
  });
  server.registerTool("test_tool_with_logging", { description: "logs" }, async (context) => {
    for (const what of ["started", "processing", "completed"]) await context.mcpReq.log("info", `Tool ${what}`);
    return answer([textOf("logged")]);
  });
  server.registerTool("test_tool_with_progress", { description: "progress" }, async (context) => {
    const { _meta: { progressToken } = {} } = context.mcpReq;
    for (const progress of progressToken === undefined ? [] : [0, 50, 100]) {
      const params = { progressToken: progressToken ?? "", progress, total: 100 };
      await context.mcpReq.notify({ method: "notifications/progress", params });
    }
    return answer([textOf("done")]);
  });
  server.registerResource("text", "test://static-text", { mimeType: "text/plain" }, async ({ href: uri }) => ({
    contents: [{ uri, mimeType: "text/plain", text: "This is the content of the static text resource." }],
  }));
  server.registerResource("binary", "test://static-binary", { mimeType: "image/png" }, async ({ href: uri }) => ({
    contents: [{ uri, mimeType: "image/png", blob: PNG }],
  }));
  const template = new ResourceTemplate("test://template/{id}/data", { list: undefined });
  server.registerResource("template", template, {}, async ({ href: uri }, { id }) => ({
    contents: [
      {
        uri,
        mimeType: "application/json",
        text: JSON.stringify({ id, templateTest: true, data: `Data for ID: ${String(id)}` }),
      },
    ],
  }));
  return server;
}

/** Answers at /mcp with the fixtures instead of our tools. */
export function fixtureAnswerer(): McpEndpointOptions["answerMcp"] {
  const handler = createMcpHandler(fixtures);
  return ({ request }) => handler.fetch(request);
}
