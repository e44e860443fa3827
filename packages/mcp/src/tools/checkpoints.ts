import { SandboxerError } from "@sandboxer/protocol/errors";
import { z } from "zod";
import { checkpointSchema, drawHistory, historyOf, takeCheckpoint } from "../history.ts";
import { defineTool } from "../tool.ts";
import { callsOf, given, idempotencyKey, requestIdSchema, sandboxIdSchema, snapshotSchema } from "./common.ts";

const checkpoint = defineTool({
  name: "checkpoint",
  title: "Take a checkpoint",
  core: true,
  description:
    "Save the whole state of a sandbox under a name: files, memory and running programs. The sandbox keeps running. " +
    "Take one before anything risky, then rewind to it if that fails.",
  input: z.strictObject({
    sandbox_id: sandboxIdSchema,
    name: z
      .string()
      .max(128)
      .optional()
      .describe("Letters, digits, dots, dashes and underscores; unique on the server. Use it instead of the id."),
    note: z.string().max(1000).optional().describe("A note on this state, which history shows."),
    request_id: requestIdSchema,
  }),
  output: checkpointSchema,
  annotations: { destructiveHint: false },
  async run(call, { sandbox_id, name, note, request_id }) {
    const options = { signal: call.signal, ...given({ idempotencyKey: idempotencyKey("checkpoint", request_id) }) };
    return { structured: await takeCheckpoint(callsOf(call, sandbox_id), { name, note }, options) };
  },
});

const history = defineTool({
  name: "history",
  title: "Show checkpoints",
  core: false,
  description: "Show the tree of checkpoints of a sandbox, and those that it descends from, oldest first.",
  input: z.strictObject({
    sandbox_id: sandboxIdSchema,
    offset: z.number().int().nonnegative().default(0),
    limit: z.number().int().min(1).max(500).default(100),
  }),
  output: z.object({
    sandbox_id: z.string(),
    based_on: z.string().nullable().describe("The checkpoint that the sandbox was created from or rewound to."),
    checkpoints: z.array(checkpointSchema),
    total: z.number().int(),
    next_offset: z.number().int().nullable(),
  }),
  annotations: { readOnlyHint: true },
  async run({ transport, signal }, { sandbox_id, offset, limit }) {
    const { based_on, checkpoints } = await historyOf(transport, sandbox_id, signal);
    const page = checkpoints.slice(offset, offset + limit);
    const end = offset + page.length;
    const nextOffset = end < checkpoints.length ? end : null;
    const rest = nextOffset === null ? "" : `\n[${checkpoints.length - end} more from offset ${end}]`;
    return {
      structured: { sandbox_id, based_on, checkpoints: page, total: checkpoints.length, next_offset: nextOffset },
      text: drawHistory({ based_on, checkpoints: page }) + rest,
    };
  },
});

const diff = defineTool({
  name: "diff",
  title: "Compare with a checkpoint",
  core: true,
  description:
    "List the files that changed since a checkpoint: up to now, or up to another checkpoint. Shows names and sizes; " +
    "read the files themselves with file_read. Memory is not compared.",
  input: z.strictObject({
    sandbox_id: sandboxIdSchema.optional().describe("Compare with this sandbox as it is now."),
    from: snapshotSchema,
    to: snapshotSchema.optional().describe("Another checkpoint, instead of sandbox_id."),
    offset: z.number().int().nonnegative().max(50_000).default(0),
    limit: z.number().int().min(1).max(1000).default(200),
  }),
  output: z.object({
    from: z.string(),
    to: z.string(),
    added: z.number().int(),
    changed: z.number().int(),
    removed: z.number().int(),
    changes: z.array(
      z.object({
        path: z.string(),
        change: z.enum(["added", "changed", "removed"]),
        kind: z.enum(["file", "folder", "symlink", "other"]),
        size_before: z.number().int().nullable(),
        size_after: z.number().int().nullable(),
      }),
    ),
    next_offset: z.number().int().nullable(),
  }),
  annotations: { readOnlyHint: true },
  async run(call, { sandbox_id, from, to, offset, limit }) {
    if ((sandbox_id === undefined) === (to === undefined)) {
      throw new SandboxerError("bad_request", "Give either sandbox_id or to.");
    }
    const { signal } = call;
    const query = { to: to ?? `sandbox:${sandbox_id ?? ""}`, limit: offset + limit };
    const input = { params: { id: from }, query };
    const found =
      sandbox_id === undefined
        ? await call.transport.call("diffSnapshots", input, { signal })
        : // A paused sandbox is resumed.
          await callsOf(call, sandbox_id).call("diffSnapshots", input, { signal });
    const { added, changed, removed, truncated } = found;
    const changes = found.changes.slice(offset);
    const end = offset + changes.length;
    const structured = { ...found, changes, next_offset: truncated ? end : null };
    const { truncated: _, ...kept } = structured;
    const lines = changes.map(
      ({ path, change, size_before, size_after }) =>
        `${change} ${path} (${size_before ?? "-"} -> ${size_after ?? "-"} bytes)`,
    );
    const head = `${added} added, ${changed} changed, ${removed} removed`;
    return { structured: kept, text: [head, ...lines, ...(truncated ? [`[more from offset ${end}]`] : [])].join("\n") };
  },
});

const rewind = defineTool({
  name: "rewind",
  title: "Rewind to a checkpoint",
  core: true,
  description:
    "Return a sandbox to a checkpoint, in place: files, memory and running programs are as they were then. Everything " +
    "since is undone. The present state is saved as a checkpoint first, unless keep_present is false.",
  input: z.strictObject({
    sandbox_id: sandboxIdSchema,
    to: snapshotSchema,
    keep_present: z.boolean().default(true).describe("Take a checkpoint of the present state first."),
  }),
  output: z.object({
    sandbox_id: z.string(),
    rewound_to: z.string(),
    before: checkpointSchema.nullable().describe("The state before: rewind to it to undo this."),
  }),
  annotations: { destructiveHint: true },
  async run(call, { sandbox_id, to, keep_present }) {
    const { transport, signal } = call;
    const calls = callsOf(call, sandbox_id);
    // A checkpoint that does not exist must not cost a save.
    const target = await transport.call("getSnapshot", { params: { id: to } }, { signal });
    const note = `before the rewind to ${target.name ?? target.id}`;
    const before = keep_present ? await takeCheckpoint(calls, { note }, { signal }) : null;
    await calls.call("rewindSandbox", { params: { id: sandbox_id }, body: { snapshot_id: target.id } }, { signal });
    return { structured: { sandbox_id, rewound_to: target.id, before } };
  },
});

const fork = defineTool({
  name: "fork",
  title: "Fork a sandbox",
  core: true,
  description:
    "Create new sandboxes that begin with the state of this one, or of a checkpoint, with files, memory and running " +
    "programs. Try something different in each, then promote the best one.",
  input: z.strictObject({
    sandbox_id: sandboxIdSchema.optional().describe("Fork it as it is now; it keeps running."),
    from: snapshotSchema.optional().describe("Begin with this checkpoint, instead of sandbox_id."),
    count: z.number().int().min(1).max(20).default(1),
    request_id: requestIdSchema,
  }),
  output: z.object({
    sandbox_ids: z.array(z.string()),
    checkpoint_id: z.string().describe("The state that they begin with."),
  }),
  annotations: { destructiveHint: false },
  async run(call, { sandbox_id, from, count, request_id }) {
    const { transport, signal } = call;
    if (sandbox_id !== undefined && from === undefined) {
      const options = { signal, ...given({ idempotencyKey: idempotencyKey("fork", request_id) }) };
      const input = { params: { id: sandbox_id }, body: { count } };
      const { items, snapshot_id } = await callsOf(call, sandbox_id).call("forkSandbox", input, options);
      return { structured: { sandbox_ids: items.map(({ id }) => id), checkpoint_id: snapshot_id } };
    }
    if (from === undefined || sandbox_id !== undefined) {
      throw new SandboxerError("bad_request", "Give either sandbox_id or from.");
    }
    const { id } = await transport.call("getSnapshot", { params: { id: from } }, { signal });
    const ids: string[] = [];
    for (let number = 0; number < count; number += 1) {
      const repeated = request_id === undefined ? undefined : `${request_id}:${number}`;
      const options = { signal, ...given({ idempotencyKey: idempotencyKey("fork", repeated) }) };
      ids.push((await transport.call("restoreSnapshot", { params: { id } }, options)).id);
    }
    return { structured: { sandbox_ids: ids, checkpoint_id: id } };
  },
});

const promote = defineTool({
  name: "promote",
  title: "Promote a fork",
  core: true,
  description:
    "Give the state of a fork to the sandbox that it was forked from, which keeps its id, key and name, and delete the " +
    "fork. The former state is kept as a checkpoint. With discard_others, delete the other forks too.",
  input: z.strictObject({
    winner: sandboxIdSchema.describe("The fork to keep."),
    into: sandboxIdSchema.optional().describe("The original. Default: the sandbox that it was forked from directly."),
    discard_others: z.boolean().default(false),
    request_id: requestIdSchema,
  }),
  output: z.object({
    sandbox_id: z.string().describe("The original, with the state of the winner."),
    before: z.string().describe("The checkpoint with the former state of the original: rewind to it to undo this."),
    deleted: z.array(z.string()),
    not_deleted: z.array(z.object({ sandbox_id: z.string(), reason: z.string() })),
  }),
  annotations: { destructiveHint: true },
  async run(call, { winner, into, discard_others, request_id }) {
    const { transport, signal } = call;
    const id = into ?? (await transport.call("getSandbox", { params: { id: winner } }, { signal })).origin.sandbox_id;
    if (id === null) {
      throw new SandboxerError("bad_request", "The sandbox was created from scratch, so there is no original.", {
        hint: "Promote a sandbox that fork has created.",
      });
    }
    const options = { signal, ...given({ idempotencyKey: idempotencyKey("promote", request_id) }) };
    const input = { params: { id }, body: { winner, discard_others } };
    const { former_snapshot_id, deleted, kept } = await callsOf(call, id).call("promoteSandbox", input, options);
    const notDeleted = kept.map(({ id: other, message }) => ({ sandbox_id: other, reason: message }));
    return { structured: { sandbox_id: id, before: former_snapshot_id, deleted, not_deleted: notDeleted } };
  },
});

export const CHECKPOINT_TOOLS = [checkpoint, history, diff, rewind, fork, promote];
