import type { Tool } from "../tool.ts";
import { CHECKPOINT_TOOLS } from "./checkpoints.ts";
import { FILE_TOOLS } from "./files.ts";
import { PROCESS_TOOLS } from "./processes.ts";
import { SANDBOX_TOOLS } from "./sandboxes.ts";

/** `core`: enough to work and to rewind, for agents with little room for tools. */
export const TOOL_SETS = ["core", "all"] as const;
export type ToolSet = (typeof TOOL_SETS)[number];

const TOOLS: readonly Tool[] = [...SANDBOX_TOOLS, ...PROCESS_TOOLS, ...FILE_TOOLS, ...CHECKPOINT_TOOLS];

export function toolsOf(set: ToolSet): readonly Tool[] {
  return set === "all" ? TOOLS : TOOLS.filter(({ core }) => core);
}
