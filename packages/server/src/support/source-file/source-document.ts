/** A file that people write (YAML or TOML), parsed with the position of each value. */
export interface SourceDocument {
  readonly file: string;
  /** Undefined if the syntax is invalid. */
  readonly value: unknown;
  /** Syntax errors. */
  readonly problems: readonly Problem[];
  /** The position of the value (or its key); for a missing value, that of its nearest parent. */
  positionOf(path: readonly PropertyKey[], part: "key" | "value"): Position | undefined;
  /** A number or boolean as it was written: `1.10` and not 1.1. */
  textOf(path: readonly PropertyKey[]): string | undefined;
}

/** Both count from 1. */
export interface Position {
  readonly line: number;
  readonly column: number;
}

/** Never contains values: a secret in the wrong place must not reach a log. */
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
