import type { Expression, Target } from "../instruction.ts";
import type { ProgramBuilder } from "../program-builder.ts";
import type { Word } from "./word.ts";

export interface CommandContext {
  readonly builder: ProgramBuilder;
  readonly words: readonly Word[];
  readonly stdout: Target;
  readonly stderr: Target;
  readonly stdin?: Expression;
}
