import { SandboxCalls } from "@sandboxer/client/transport";
import { z } from "zod";
import type { ToolCall } from "../tool.ts";

export const sandboxIdSchema = z.string().min(1).max(128).describe("The id of a sandbox, from sandbox_open or fork.");

export const snapshotSchema = z.string().min(1).max(128).describe("The id or name of a checkpoint, see history.");

export const requestIdSchema = z
  .string()
  .min(1)
  .max(128)
  .optional()
  .describe("Any unique text. Repeat a call with the same text to get its first result instead of doing it twice.");

/** How much of an output one answer has by default, and at most. */
export const DEFAULT_BUDGET_BYTES = 16 * 1024;
export const MAX_BUDGET_BYTES = 256 * 1024;

export const budgetSchema = z
  .number()
  .int()
  .min(256)
  .max(MAX_BUDGET_BYTES)
  .default(DEFAULT_BUDGET_BYTES)
  .describe("The most bytes of output in the answer.");

/** Calls about a sandbox, wherever it runs. A paused sandbox is resumed. */
export function callsOf({ transport }: ToolCall, sandboxId: string): SandboxCalls {
  return new SandboxCalls(transport, sandboxId);
}

/** As {@link callsOf}, but a paused sandbox stays paused. */
export function passively({ transport }: ToolCall, sandboxId: string): SandboxCalls {
  return new SandboxCalls(transport, sandboxId, { autoResume: false });
}

/** Tools share one space of keys, so a key names its tool. */
export function idempotencyKey(tool: string, requestId: string | undefined): string | undefined {
  return requestId === undefined ? undefined : `mcp:${tool}:${requestId}`;
}

/** Without the fields that were not given. */
export function given<Fields extends Record<string, unknown>>(
  fields: Fields,
): { [Key in keyof Fields]?: Exclude<Fields[Key], undefined> } {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as never;
}
