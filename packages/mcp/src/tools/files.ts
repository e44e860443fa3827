import { SandboxFiles } from "@sandboxer/client";
import { SandboxerError } from "@sandboxer/protocol/errors";
import { z } from "zod";
import { defineTool, type ToolCall } from "../tool.ts";
import { completeLength, textOf } from "../utf8.ts";
import { budgetSchema, callsOf, sandboxIdSchema } from "./common.ts";

const pathSchema = z.string().startsWith("/").max(4096).describe("An absolute path inside the sandbox.");
const encodingSchema = z.enum(["utf8", "base64"]);

/** The largest file that file_edit changes. */
const MAX_EDITED_BYTES = 4 * 1024 * 1024;

export function filesOf(call: ToolCall, sandboxId: string): SandboxFiles {
  return new SandboxFiles(callsOf(call, sandboxId));
}

const fileRead = defineTool({
  name: "file_read",
  title: "Read a file",
  core: true,
  description: "Read a file from a byte offset. A file that is not text comes in base64.",
  input: z.strictObject({
    sandbox_id: sandboxIdSchema,
    path: pathSchema,
    offset: z.number().int().nonnegative().default(0).describe("Bytes."),
    max_bytes: budgetSchema,
  }),
  output: z.object({
    path: z.string(),
    content: z.string(),
    encoding: encodingSchema,
    next_offset: z.number().int().nullable().describe("The offset to continue at; null: this is the end of the file."),
  }),
  annotations: { readOnlyHint: true },
  async run(call, { sandbox_id, path, offset, max_bytes }) {
    const { signal } = call;
    // One more byte than the answer has shows whether the file continues.
    const bytes = await filesOf(call, sandbox_id).read(path, { offset, length: max_bytes + 1, signal });
    const isCut = bytes.length > max_bytes;
    const kept = bytes.subarray(0, max_bytes);
    const whole = isCut ? kept.subarray(0, completeLength(kept)) : kept;
    const text = textOf(whole);
    const read = text === undefined ? kept : whole;
    const content = text ?? Buffer.from(kept).toString("base64");
    const nextOffset = isCut ? offset + read.length : null;
    const rest = nextOffset === null ? "" : `\n[The file continues: read on from offset ${nextOffset}.]`;
    const encoding = text === undefined ? ("base64" as const) : ("utf8" as const);
    return { structured: { path, content, encoding, next_offset: nextOffset }, text: content + rest };
  },
});

const fileWrite = defineTool({
  name: "file_write",
  title: "Write a file",
  core: true,
  description: "Create or replace a file. Missing parent folders are created.",
  input: z.strictObject({
    sandbox_id: sandboxIdSchema,
    path: pathSchema,
    content: z.string().max(4_000_000),
    encoding: encodingSchema.default("utf8"),
    mode: z
      .string()
      .regex(/^0?[0-7]{3,4}$/)
      .optional()
      .describe("Octal, such as 0755."),
  }),
  output: z.object({ path: z.string(), written_bytes: z.number().int() }),
  annotations: { destructiveHint: true, idempotentHint: true },
  async run(call, { sandbox_id, path, content, encoding, mode }) {
    const bytes = Buffer.from(content, encoding);
    await filesOf(call, sandbox_id).write(path, bytes, {
      signal: call.signal,
      mode: mode === undefined ? undefined : Number.parseInt(mode, 8),
    });
    return { structured: { path, written_bytes: bytes.length } };
  },
});

const fileEdit = defineTool({
  name: "file_edit",
  title: "Edit a file",
  core: true,
  description:
    "Replace exact text in a file. Fails, and changes nothing, unless old_text occurs exactly once, or replace_all is set.",
  input: z.strictObject({
    sandbox_id: sandboxIdSchema,
    path: pathSchema,
    old_text: z.string().min(1).max(1_000_000),
    new_text: z.string().max(1_000_000),
    replace_all: z.boolean().default(false),
  }),
  output: z.object({ path: z.string(), replaced: z.number().int() }),
  annotations: { destructiveHint: true },
  async run(call, { sandbox_id, path, old_text, new_text, replace_all }) {
    const files = filesOf(call, sandbox_id);
    const { signal } = call;
    const bytes = await files.read(path, { length: MAX_EDITED_BYTES + 1, signal });
    if (bytes.length > MAX_EDITED_BYTES) {
      throw new SandboxerError("too_large", `${path} has more than ${MAX_EDITED_BYTES} bytes.`, {
        hint: "Change it with a program inside, such as sed or python, with run.",
      });
    }
    const text = textOf(bytes);
    if (text === undefined) {
      throw new SandboxerError("bad_request", `${path} is not a text file.`, { hint: "Replace it with file_write." });
    }
    const parts = text.split(old_text);
    const count = parts.length - 1;
    if (count === 0) {
      throw new SandboxerError("bad_request", `old_text does not occur in ${path}.`, {
        hint: "Read the file with file_read, and copy the text exactly, with its spaces and line ends.",
      });
    }
    if (count > 1 && !replace_all) {
      throw new SandboxerError("bad_request", `old_text occurs ${count} times in ${path}.`, {
        hint: "Include more of the lines around it in old_text, or set replace_all.",
      });
    }
    await files.write(path, parts.join(new_text), { signal });
    return { structured: { path, replaced: count } };
  },
});

const fileList = defineTool({
  name: "file_list",
  title: "List a folder",
  core: true,
  description: "List the files of a folder, sorted by name.",
  input: z.strictObject({
    sandbox_id: sandboxIdSchema,
    path: pathSchema,
    offset: z.number().int().nonnegative().default(0).describe("How many entries to skip."),
    limit: z.number().int().min(1).max(1000).default(200),
  }),
  output: z.object({
    path: z.string(),
    entries: z.array(
      z.object({
        name: z.string(),
        kind: z.enum(["file", "folder", "symlink", "other"]),
        size_bytes: z.number().int(),
        modified_at: z.string(),
        link_target: z.string().nullable(),
      }),
    ),
    total: z.number().int(),
    next_offset: z.number().int().nullable().describe("null: there are no further entries."),
  }),
  annotations: { readOnlyHint: true },
  async run(call, { sandbox_id, path, offset, limit }) {
    const input = { params: { id: sandbox_id }, query: { path } };
    const { items } = await callsOf(call, sandbox_id).call("listFiles", input, { signal: call.signal });
    const entries = items.slice(offset, offset + limit).map(({ name, kind, size_bytes, modified_at, link_target }) => ({
      name,
      kind,
      size_bytes,
      modified_at,
      link_target,
    }));
    const end = offset + entries.length;
    return { structured: { path, entries, total: items.length, next_offset: end < items.length ? end : null } };
  },
});

export const FILE_TOOLS = [fileRead, fileWrite, fileEdit, fileList];
