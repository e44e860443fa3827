import { createRequire } from "node:module";
import type { Position, Problem, SourceDocument } from "./source-document.ts";

const load = (): typeof import("smol-toml") =>
  createRequire(import.meta.url)("smol-toml") as typeof import("smol-toml");

export function readTomlDocument(file: string, text: string): SourceDocument {
  const { parse, TomlError } = load();
  let value: unknown;
  const problems: Problem[] = [];
  try {
    value = parse(text);
  } catch (thrown) {
    if (!(thrown instanceof TomlError)) throw thrown;
    // The lines after the first quote the file.
    const message = (thrown.message.split("\n")[0] ?? "").replace(/^Invalid TOML document: /, "");
    problems.push({ file, line: thrown.line, column: thrown.column, message });
  }
  const positions = keyPositions(text);
  return {
    file,
    value,
    problems,
    positionOf(path, part) {
      for (let length = path.length; length > 0; length--) {
        const found = positions.get(path.slice(0, length).map(String).join("\0"));
        if (found !== undefined) return part === "key" || length < path.length ? found.key : found.value;
      }
      return { line: 1, column: 1 };
    },
    textOf(path) {
      let found = value;
      for (const name of path) found = (found as Record<PropertyKey, unknown> | undefined)?.[name];
      return typeof found === "number" || typeof found === "boolean" ? String(found) : undefined;
    },
  };
}

interface KeyPosition {
  readonly key: Position;
  readonly value: Position;
}

const BARE_OR_QUOTED = String.raw`(?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*')`;
const DOTTED = String.raw`${BARE_OR_QUOTED}(?:\s*\.\s*${BARE_OR_QUOTED})*`;
const TABLE = new RegExp(String.raw`^(\s*\[\[?\s*)(${DOTTED})\s*\]`);
const ASSIGNMENT = new RegExp(String.raw`^(\s*)(${DOTTED})(\s*=\s*)`);

/**
 * The parser reports no positions. This finds the lines `[table]` and `key =`, where keys are in hand-written files; a
 * value inside an inline table has the position of the table.
 */
function keyPositions(text: string): Map<string, KeyPosition> {
  const positions = new Map<string, KeyPosition>();
  const add = (path: readonly string[], position: KeyPosition): void => {
    const name = path.join("\0");
    if (!positions.has(name)) positions.set(name, position);
  };
  let table: string[] = [];
  text.split(/\r?\n/).forEach((content, index) => {
    const line = index + 1;
    const header = TABLE.exec(content);
    const assignment = ASSIGNMENT.exec(content);
    if (header !== null) {
      table = names(header[2] ?? "");
      const key = { line, column: (header[1] ?? "").length + 1 };
      table.forEach((_, depth) => add(table.slice(0, depth + 1), { key, value: key }));
    } else if (assignment !== null) {
      const [whole, indent = "", dotted = ""] = assignment;
      const path = names(dotted);
      const position = { key: { line, column: indent.length + 1 }, value: { line, column: whole.length + 1 } };
      path.forEach((_, depth) => add([...table, ...path.slice(0, depth + 1)], position));
    }
  });
  return positions;
}

function names(dotted: string): string[] {
  return [...dotted.matchAll(new RegExp(BARE_OR_QUOTED, "g"))].map(([name]) => name.replaceAll(/^["']|["']$/g, ""));
}
