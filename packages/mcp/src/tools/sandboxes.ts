import type { SandboxRecord } from "@sandboxer/protocol";
import { z } from "zod";
import { defineTool } from "../tool.ts";
import { given, idempotencyKey, passively, requestIdSchema, sandboxIdSchema } from "./common.ts";

const sandboxSchema = z.object({
  sandbox_id: z.string(),
  name: z.string().nullable(),
  key: z.string().nullable(),
  state: z.string().describe("running, stored (paused: it resumes when it is used), …"),
  profile: z.string().nullable(),
  image: z.string().nullable(),
  network: z.string(),
  created_at: z.string(),
  expires_at: z.string().nullable(),
  based_on: z.string().nullable().describe("The checkpoint that it was created from or rewound to."),
  forked_from: z.string().nullable().describe("The sandbox that it was forked from."),
});

/** A sandbox as tools show it. Never with its token: the caller's key opens it. */
function shown(record: SandboxRecord): z.infer<typeof sandboxSchema> {
  const { id, name, key, state, profile, image, network, created_at, expires_at, origin } = record;
  return {
    sandbox_id: id,
    name,
    key,
    state,
    profile,
    image,
    network: typeof network === "string" ? network : JSON.stringify(network),
    created_at,
    expires_at,
    based_on: origin.snapshot_id,
    forked_from: origin.sandbox_id,
  };
}

const sandboxOpen = defineTool({
  name: "sandbox_open",
  title: "Open a sandbox",
  core: true,
  description:
    "Get a sandbox to run commands in. With a key, the same key finds the same sandbox again, with its files and " +
    "running programs: use one key for each conversation or task. Without a key, create a new sandbox.",
  input: z.strictObject({
    key: z.string().min(1).max(256).optional().describe("A name of your choice for this task."),
    name: z.string().max(128).optional(),
    profile: z.string().min(1).max(128).optional().describe("A template of the server."),
    image: z.string().min(1).max(4096).optional().describe("A container image, such as docker.io/library/node:24."),
    env: z.record(z.string(), z.string()).optional(),
    network: z
      .union([
        z.enum(["none", "open"]),
        z.strictObject({ allow: z.array(z.string()).optional(), deny: z.array(z.string()).optional() }),
      ])
      .optional()
      .describe("Default: that of the profile or the server."),
    max_loss: z
      .string()
      .max(32)
      .optional()
      .describe("The most work that may be lost if its server dies, such as 30s. Default: that of the server."),
    request_id: requestIdSchema,
  }),
  output: sandboxSchema.extend({
    found: z.enum(["existing", "restored", "new"]).describe("restored: from the newest checkpoint with this key."),
  }),
  annotations: { destructiveHint: false },
  async run({ transport, signal }, { key, request_id, ...settings }) {
    const body = given(settings);
    if (key === undefined) {
      const options = { signal, ...given({ idempotencyKey: idempotencyKey("sandbox_open", request_id) }) };
      const record = await transport.call("createSandbox", { body }, options);
      return { structured: { ...shown(record), found: "new" as const } };
    }
    const record = await transport.call("acquireSandbox", { body: { ...body, key } }, { signal });
    const found = ({ reattached: "existing", restored: "restored", fresh: "new" } as const)[record.tier];
    return { structured: { ...shown(record), found } };
  },
});

const sandboxList = defineTool({
  name: "sandbox_list",
  title: "List sandboxes",
  core: false,
  description: "List sandboxes, newest first.",
  input: z.strictObject({
    name: z.string().optional(),
    key: z.string().optional(),
    limit: z.number().int().min(1).max(200).default(50),
    cursor: z.string().max(1024).optional().describe("next_cursor of the page before."),
  }),
  output: z.object({ sandboxes: z.array(sandboxSchema), next_cursor: z.string().nullable() }),
  annotations: { readOnlyHint: true },
  async run({ transport, signal }, { name, key, limit, cursor }) {
    const query = { limit, ...given({ name, key, cursor }) };
    const { items, next_cursor } = await transport.call("listSandboxes", { query }, { signal });
    return { structured: { sandboxes: items.map(shown), next_cursor } };
  },
});

const sandboxInfo = defineTool({
  name: "sandbox_info",
  title: "Describe a sandbox",
  core: false,
  description: "Show a sandbox with its origin, its last save and its processes. Does not resume it.",
  input: z.strictObject({ sandbox_id: sandboxIdSchema }),
  output: sandboxSchema.extend({
    last_saved_at: z.string().nullable(),
    processes: z.array(
      z.object({
        process_id: z.string(),
        command: z.string().nullable(),
        state: z.enum(["running", "exited"]),
        exit_code: z.number().int().nullable(),
      }),
    ),
  }),
  annotations: { readOnlyHint: true },
  async run(call, { sandbox_id }) {
    const { transport, signal } = call;
    const record = await transport.call("getSandbox", { params: { id: sandbox_id } }, { signal });
    const listed = { params: { id: sandbox_id }, query: { saved: true } };
    const { items } = await passively(call, sandbox_id).call("listProcesses", listed, { signal });
    const processes = items.map(({ id, command, state, exit_code }) => ({
      process_id: id,
      command: command?.join(" ").slice(0, 500) ?? null,
      state,
      exit_code,
    }));
    return { structured: { ...shown(record), last_saved_at: record.durability.last_saved_at, processes } };
  },
});

const sandboxPause = defineTool({
  name: "sandbox_pause",
  title: "Pause a sandbox",
  core: false,
  description: "Save a sandbox with its memory and stop it. The next call about it resumes it where it was.",
  input: z.strictObject({ sandbox_id: sandboxIdSchema }),
  output: sandboxSchema,
  annotations: { destructiveHint: false, idempotentHint: true },
  async run(call, { sandbox_id }) {
    const { transport, signal } = call;
    const target = { params: { id: sandbox_id } };
    const before = await transport.call("getSandbox", target, { signal });
    if (before.state === "stored") return { structured: shown(before) };
    return { structured: shown(await passively(call, sandbox_id).call("checkpointSandbox", target, { signal })) };
  },
});

const sandboxDestroy = defineTool({
  name: "sandbox_destroy",
  title: "Delete a sandbox",
  core: false,
  description: "Delete a sandbox permanently. Its checkpoints are kept.",
  input: z.strictObject({ sandbox_id: sandboxIdSchema }),
  output: z.object({ deleted: z.string() }),
  annotations: { destructiveHint: true, idempotentHint: true },
  async run({ transport, signal }, { sandbox_id }) {
    await transport.call("destroySandbox", { params: { id: sandbox_id } }, { signal });
    return { structured: { deleted: sandbox_id } };
  },
});

const previewUrl = defineTool({
  name: "preview_url",
  title: "Get the URL of a port",
  core: false,
  description:
    "Get a URL that opens a port of a program inside, in a browser and without a key, until it expires. Show it to the " +
    "person you work for.",
  input: z.strictObject({
    sandbox_id: sandboxIdSchema,
    port: z.number().int().min(1).max(65_535),
    expires: z.string().max(32).default("1h").describe("How long it works, such as 30m or 1d."),
  }),
  output: z.object({ url: z.string(), expires_at: z.string().nullable() }),
  annotations: { destructiveHint: false },
  async run({ transport, signal }, { sandbox_id, port, expires }) {
    const input = { params: { id: sandbox_id }, body: { port, expires } };
    const { url, expires_at } = await transport.call("createPortLink", input, { signal });
    return { structured: { url, expires_at }, text: url };
  },
});

export const SANDBOX_TOOLS = [sandboxOpen, sandboxList, sandboxInfo, sandboxPause, sandboxDestroy, previewUrl];
