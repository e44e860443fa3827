import { SandboxFiles } from "@sandboxer/client";
import { SandboxCalls, type Transport } from "@sandboxer/client/transport";
import { SandboxerError } from "@sandboxer/protocol/errors";
import {
  type McpServer,
  ProtocolError,
  ProtocolErrorCode,
  type ReadResourceResult,
  ResourceTemplate,
} from "@modelcontextprotocol/server";
import { hintOf } from "./hints.ts";
import { historyOf } from "./history.ts";
import { textOf } from "./utf8.ts";

/** The largest file that is a resource. */
const MAX_FILE_BYTES = 1024 * 1024;
const MAX_LISTED = 100;

/** Files and histories, for hosts that show resources to people. */
export function registerResources(server: McpServer, transport: Transport): void {
  server.registerResource(
    "file",
    new ResourceTemplate("sandbox://{id}/files{+path}", { list: undefined }),
    { title: "A file in a sandbox", description: "For example sandbox://ID/files/home/user/notes.txt." },
    async (uri, { id, path }, { mcpReq: { signal } }) =>
      translated(async () => {
        const files = new SandboxFiles(new SandboxCalls(transport, one(id)));
        const bytes = await files.read(decodeURIComponent(one(path)), { length: MAX_FILE_BYTES + 1, signal });
        if (bytes.length > MAX_FILE_BYTES) {
          throw new SandboxerError("too_large", "The file has more than 1 MiB.", {
            hint: "Read parts of it with the tool file_read.",
          });
        }
        const text = textOf(bytes);
        if (text !== undefined) return { contents: [{ uri: uri.href, mimeType: "text/plain", text }] };
        const blob = Buffer.from(bytes).toString("base64");
        return { contents: [{ uri: uri.href, mimeType: "application/octet-stream", blob }] };
      }),
  );
  server.registerResource(
    "history",
    new ResourceTemplate("sandbox://{id}/history", {
      list: async ({ mcpReq: { signal } }) =>
        translated(async () => {
          const { items } = await transport.call("listSandboxes", { query: { limit: MAX_LISTED } }, { signal });
          const resources = items.map(({ id, name }) => ({
            uri: `sandbox://${id}/history`,
            name: `History of ${name ?? id}`,
            mimeType: "application/json",
          }));
          return { resources };
        }),
    }),
    { title: "The checkpoints of a sandbox", mimeType: "application/json" },
    async (uri, { id }, { mcpReq: { signal } }): Promise<ReadResourceResult> =>
      translated(async () => {
        const text = JSON.stringify(await historyOf(transport, one(id), signal), null, 2);
        return { contents: [{ uri: uri.href, mimeType: "application/json", text }] };
      }),
  );
}

function one(value: string | string[] | undefined): string {
  return (Array.isArray(value) ? value.join("/") : value) ?? "";
}

async function translated<Result>(work: () => Promise<Result>): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof SandboxerError)) throw error;
    const { code, message, details } = error;
    const hint = hintOf(error);
    const known = error.row.httpStatus < 500 ? ProtocolErrorCode.InvalidParams : ProtocolErrorCode.InternalError;
    throw new ProtocolError(known, `${message} ${hint}`, { code, hint, details });
  }
}
