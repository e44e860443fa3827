import { z } from "zod";
import { flagSchema, pageOf } from "../common.ts";
import { fileEntrySchema } from "../process-record.ts";
import { route } from "../route.ts";
import { sandboxParams } from "./sandboxes.ts";

const tag = "files";
const BYTES = { stream: "application/octet-stream" } as const;
const TAR = { stream: "application/x-tar" } as const;
const path = z.string().startsWith("/", "must be absolute").max(4096);
const mode = z
  .string()
  .regex(/^0?[0-7]{3,4}$/, "must be octal, such as 0644")
  .transform((text) => Number.parseInt(text, 8));

export const FILE_ROUTES = {
  readFile: route({
    method: "GET",
    path: "/v1/sandboxes/{id}/files",
    summary: "Read a file, or a range of it.",
    tag,
    scope: "read",
    params: sandboxParams,
    query: z.object({
      path,
      offset: z.coerce.number().int().nonnegative().optional(),
      length: z.coerce.number().int().positive().optional(),
    }),
    status: 200,
    response: BYTES,
  }),
  writeFile: route({
    method: "PUT",
    path: "/v1/sandboxes/{id}/files",
    summary: "Write the request body to a file.",
    tag,
    scope: "use",
    params: sandboxParams,
    query: z.object({ path, mode: mode.optional(), parents: flagSchema.optional() }),
    body: BYTES,
    status: 204,
    fenced: true,
  }),
  removeFile: route({
    method: "DELETE",
    path: "/v1/sandboxes/{id}/files",
    summary: "Delete a file, or a folder with recursive.",
    tag,
    scope: "use",
    params: sandboxParams,
    query: z.object({ path, recursive: flagSchema.optional() }),
    status: 204,
    fenced: true,
  }),
  statFile: route({
    method: "GET",
    path: "/v1/sandboxes/{id}/files/stat",
    summary: "Describe a path.",
    tag,
    scope: "read",
    params: sandboxParams,
    query: z.object({ path }),
    status: 200,
    response: fileEntrySchema,
  }),
  listFiles: route({
    method: "GET",
    path: "/v1/sandboxes/{id}/files/list",
    summary: "List a folder, sorted by name.",
    tag,
    scope: "read",
    params: sandboxParams,
    query: z.object({ path }),
    status: 200,
    response: pageOf(fileEntrySchema),
  }),
  makeFolder: route({
    method: "POST",
    path: "/v1/sandboxes/{id}/files/folder",
    summary: "Create a folder.",
    tag,
    scope: "use",
    params: sandboxParams,
    body: z.strictObject({ path, parents: z.boolean().default(true) }),
    status: 204,
    fenced: true,
  }),
  renameFile: route({
    method: "POST",
    path: "/v1/sandboxes/{id}/files/rename",
    summary: "Rename or move a file or folder.",
    tag,
    scope: "use",
    params: sandboxParams,
    body: z.strictObject({ from: path, to: path }),
    status: 204,
    fenced: true,
  }),
  downloadTree: route({
    method: "GET",
    path: "/v1/sandboxes/{id}/tree",
    summary: "Download a folder or file as a tar archive.",
    tag,
    scope: "read",
    params: sandboxParams,
    query: z.object({
      path,
      skip_unreadable: flagSchema.optional().meta({ description: "Skip unreadable files instead of failing." }),
    }),
    status: 200,
    response: TAR,
  }),
  uploadTree: route({
    method: "PUT",
    path: "/v1/sandboxes/{id}/tree",
    summary: "Unpack a tar archive into a folder.",
    tag,
    scope: "use",
    params: sandboxParams,
    query: z.object({ path }),
    body: TAR,
    status: 200,
    response: z.object({ files: z.number().int(), bytes: z.number().int() }).meta({ id: "Upload" }),
    fenced: true,
  }),
} as const;
