import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { Client as FormerClient } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport as FormerStdio } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport as FormerHttp } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { onTestFinished } from "vitest";
import { COMMAND } from "../../../../test/kit/server/command.ts";

/** The part of a tool's answer that tests check. */
export interface ToolAnswer {
  readonly isError: boolean;
  readonly text: string;
  readonly structured: Record<string, unknown>;
  readonly meta: Record<string, unknown>;
}

/** The common methods of the official clients of each generation. */
export interface McpClient {
  readonly revision: string | undefined;
  readonly instructions: string | undefined;
  tools(): Promise<
    readonly { readonly name: string; readonly outputSchema?: unknown; readonly annotations?: unknown }[]
  >;
  call(name: string, input?: object): Promise<ToolAnswer>;
  /** A call that must succeed: its structured answer. */
  done<Structured = Record<string, unknown>>(name: string, input?: object): Promise<Structured>;
  read(uri: string): Promise<Record<string, unknown>>;
  resources(): Promise<readonly { readonly uri: string }[]>;
}

interface StdioPlace {
  /** Arguments of `sandboxer mcp`. */
  readonly argv: readonly string[];
  readonly key?: string;
}

interface HttpPlace {
  readonly url: string;
  readonly key?: string;
  readonly query?: string;
}

export type Where = HttpPlace | StdioPlace;
export type Generation = "2026-07-28" | "2025-11-25" | "former SDK";

const IDENTITY = { name: "test", version: "1" };

function httpOf(where: HttpPlace): { url: URL; options: { requestInit: RequestInit } } {
  const headers = where.key === undefined ? {} : { authorization: `Bearer ${where.key}` };
  return { url: new URL(`${where.url}/mcp${where.query ?? ""}`), options: { requestInit: { headers } } };
}

function stdioOf({ argv, key = "" }: StdioPlace) {
  const environment = { SANDBOXER_API_KEY: key, PATH: process.env["PATH"] ?? "" };
  return { command: process.execPath, args: [COMMAND, "mcp", ...argv], env: environment, stderr: "ignore" as const };
}

/** Connects an official client, until the test has ended. */
export async function connect(generation: Generation, where: Where): Promise<McpClient> {
  if (generation === "former SDK") return former(where);
  const mode = generation === "2026-07-28" ? { pin: generation } : "legacy";
  const client = new Client(IDENTITY, { versionNegotiation: { mode } });
  if ("url" in where) {
    const { url, options } = httpOf(where);
    await client.connect(new StreamableHTTPClientTransport(url, options));
  } else await client.connect(new StdioClientTransport(stdioOf(where)));
  onTestFinished(() => client.close());
  return common(client, client.getNegotiatedProtocolVersion());
}

async function former(where: Where): Promise<McpClient> {
  const client = new FormerClient(IDENTITY);
  if ("url" in where) {
    const { url, options } = httpOf(where);
    const transport = new FormerHttp(url, options);
    await client.connect(transport);
    onTestFinished(() => client.close());
    return common(client as never, transport.protocolVersion);
  }
  await client.connect(new FormerStdio(stdioOf(where)));
  onTestFinished(() => client.close());
  return common(client as never, undefined);
}

/** Both generations have the same methods with these results. */
function common(client: Client, revision: string | undefined): McpClient {
  const call: McpClient["call"] = async (name, input = {}) => {
    const { content, isError, structuredContent, _meta } = await client.callTool({ name, arguments: { ...input } });
    const [first] = content as { text?: string }[];
    return {
      isError: isError === true,
      text: first?.text ?? "",
      structured: (structuredContent ?? {}) as Record<string, unknown>,
      meta: _meta ?? {},
    };
  };
  return {
    revision,
    instructions: client.getInstructions(),
    tools: async () => (await client.listTools()).tools,
    call,
    done: async <Structured>(name: string, input = {}) => {
      const { isError, text, structured } = await call(name, input);
      if (isError) throw new Error(`${name}: ${text}`);
      return structured as Structured;
    },
    read: async (uri) => (await client.readResource({ uri })).contents[0] as unknown as Record<string, unknown>,
    resources: async () => (await client.listResources()).resources,
  };
}
