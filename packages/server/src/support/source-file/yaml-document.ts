import { createRequire } from "node:module";
import type { Document, Node } from "yaml";
import type { Position, Problem, SourceDocument } from "./source-document.ts";

/** Loaded at the first file: commands that read none start without it. */
const load = (): typeof import("yaml") => createRequire(import.meta.url)("yaml") as typeof import("yaml");

/** YAML 1.2. Duplicate keys, unknown tags and several documents in one file are problems. */
export function readYamlDocument(file: string, text: string): SourceDocument {
  const yaml = load();
  const lineCounter = new yaml.LineCounter();
  const document = yaml.parseDocument(text, { lineCounter, prettyErrors: false, uniqueKeys: true, stringKeys: true });
  const positionAt = (offset: number): Position => {
    const { line, col } = lineCounter.linePos(offset);
    return { line: Math.max(1, line), column: Math.max(1, col) };
  };
  const problems: Problem[] = [...document.errors, ...document.warnings].map((error) => ({
    file,
    ...positionAt(error.pos[0]),
    message: plain(error.code, error.message),
  }));
  yaml.visit(document, {
    Alias: (_, alias) => {
      if (alias.resolve(document) !== undefined) return;
      const message = "There is no anchor of this name. A text that begins with * needs quotes.";
      problems.push({ file, ...positionAt(alias.range?.[0] ?? 0), message });
    },
  });

  let value: unknown;
  if (problems.length === 0) {
    try {
      value = document.toJS();
    } catch (thrown) {
      // Aliases that expand excessively.
      problems.push({ file, line: 1, column: 1, message: (thrown as Error).message });
    }
  }

  const nodeAt = (path: readonly PropertyKey[]): Node | undefined => {
    const node = path.length === 0 ? document.contents : document.getIn(path, true);
    return yaml.isNode(node) ? node : undefined;
  };
  return {
    file,
    value,
    problems,
    positionOf(path, part) {
      for (let length = path.length; length >= 0; length--) {
        const shorter = path.slice(0, length);
        const node =
          part === "key" || length < path.length
            ? (keyAt(document, yaml, shorter) ?? nodeAt(shorter))
            : nodeAt(shorter);
        if (node?.range) return positionAt(node.range[0]);
      }
      return undefined;
    },
    textOf(path) {
      const node = nodeAt(path);
      if (!yaml.isScalar(node) || (typeof node.value !== "number" && typeof node.value !== "boolean")) return undefined;
      return node.source ?? String(node.value);
    },
  };
}

/** Without the parser's quotes from the file. */
function plain(code: string, message: string): string {
  if (code === "TAG_RESOLVE_FAILED") return "There is no such tag. A text that begins with ! needs quotes.";
  return `${message.replace(/[:\n][^]*$/, "")}.`;
}

function keyAt(document: Document, yaml: typeof import("yaml"), path: readonly PropertyKey[]): Node | undefined {
  const parent = path.length === 1 ? document.contents : document.getIn(path.slice(0, -1), true);
  if (path.length === 0 || !yaml.isMap(parent)) return undefined;
  const pair = parent.items.find(({ key }) => yaml.isScalar(key) && key.value === path.at(-1));
  return yaml.isNode(pair?.key) ? pair.key : undefined;
}
