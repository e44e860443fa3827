import type { Transport } from "@sandboxer/client/transport";
import type { z } from "zod";

/** One call of a tool. */
export interface ToolCall {
  /** Calls the sandboxer server with the caller's key. */
  readonly transport: Transport;
  /** Aborts when the caller cancels. */
  readonly signal: AbortSignal;
}

export interface ToolAnswer<Output> {
  readonly structured: Output;
  /** For the model to read. Default: the structured answer as JSON. */
  readonly text?: string;
}

interface Annotations {
  readonly readOnlyHint?: true;
  readonly destructiveHint?: boolean;
  readonly idempotentHint?: true;
}

export interface ToolDefinition<Input extends z.ZodObject, Output extends z.ZodObject> {
  readonly name: string;
  readonly title: string;
  readonly description: string;
  /** Whether `--tools core` offers it. */
  readonly core: boolean;
  readonly input: Input;
  readonly output: Output;
  readonly annotations: Annotations;
  readonly run: (call: ToolCall, input: z.output<Input>) => Promise<ToolAnswer<z.output<Output>>>;
}

/** A tool whose input has been checked against its schema before it runs. */
export type Tool = Omit<ToolDefinition<z.ZodObject, z.ZodObject>, "run"> & {
  readonly run: (call: ToolCall, input: unknown) => Promise<ToolAnswer<Record<string, unknown>>>;
};

export function defineTool<Input extends z.ZodObject, Output extends z.ZodObject>(
  definition: ToolDefinition<Input, Output>,
): Tool {
  return {
    ...definition,
    run: (call, input) => definition.run(call, input as z.output<Input>),
  };
}
