/** A file that people write (YAML or TOML), read so that each of its values knows where it stands. */
export interface SourceDocument {
  readonly file: string;
  /** Undefined when the syntax is wrong. */
  readonly value: unknown;
  /** What is wrong with the syntax. */
  readonly problems: readonly Problem[];
  /** Where the value (or its key) stands; of something that is not there, its nearest parent. */
  positionOf(path: readonly PropertyKey[], part: "key" | "value"): Position | undefined;
  /** A number or a truth value as it was written: `1.10` and not 1.1. */
  textOf(path: readonly PropertyKey[]): string | undefined;
}

/** Both count from 1. */
export interface Position {
  readonly line: number;
  readonly column: number;
}

/** Values are never part of it: a secret in the wrong place must not reach a log. */
export interface Problem {
  readonly file: string;
  readonly line?: number;
  readonly column?: number;
  readonly message: string;
}

export function formatProblem({ file, line, column, message }: Problem): string {
  return line === undefined ? `${file}: ${message}` : `${file}:${line}:${column ?? 1}: ${message}`;
}

export function problemAt(
  document: Pick<SourceDocument, "file" | "positionOf">,
  path: readonly PropertyKey[],
  message: string,
  part: "key" | "value" = "value",
): Problem {
  return { file: document.file, ...document.positionOf(path, part), message };
}
