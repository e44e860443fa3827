import { z } from "zod";
import { didYouMean } from "../nearest-name.ts";
import { problemAt, type Problem, type SourceDocument } from "./source-document.ts";

export type Checked<Value> =
  | { readonly value: Value; readonly problems: readonly [] }
  | { readonly value: undefined; readonly problems: readonly Problem[] };

/** Lists all errors of a document with their positions. */
export function checkDocument<Schema extends z.ZodType>(
  document: SourceDocument,
  schema: Schema,
): Checked<z.output<Schema>> {
  if (document.problems.length > 0) return { value: undefined, problems: document.problems };
  if (document.value === null || document.value === undefined) {
    return { value: undefined, problems: [{ file: document.file, message: "is empty." }] };
  }
  const texted = structuredClone(document.value);
  // Used for a few files: compiling the schema would take longer than checking with it.
  let parsed = schema.safeParse(texted, { jitless: true });
  // `port: 22` in place of a text is the text 22.
  const bare = (parsed.error?.issues ?? []).filter(isTextExpected);
  const written = bare.filter(({ path }) => putText(texted, path, document.textOf(path)));
  if (written.length > 0) parsed = schema.safeParse(texted, { jitless: true });
  if (parsed.success) return { value: parsed.data, problems: [] };
  return { value: undefined, problems: inFileOrder(parsed.error.issues.flatMap((issue) => describe(issue))) };

  function describe(issue: z.core.$ZodIssue): Problem[] {
    const place = issue.path.map(String).join(".");
    const named = (message: string): string => (place === "" ? message : `${place}: ${message}`);
    switch (issue.code) {
      case "unrecognized_keys":
        return issue.keys.map((key) => {
          const path = [...issue.path, key];
          const suggestion = didYouMean(key, knownKeys(schema, issue.path));
          return problemAt(document, path, `${path.map(String).join(".")}: there is no such key.${suggestion}`, "key");
        });
      case "invalid_type":
        return [problemAt(document, issue.path, named(typeMessage(issue, document.value)))];
      case "invalid_value": {
        const values = issue.values.map(String);
        const given = valueAt(document.value, issue.path);
        const suggestion = typeof given === "string" ? didYouMean(given, values) : "";
        return [problemAt(document, issue.path, named(`must be one of ${values.join(", ")}.${suggestion}`))];
      }
      case "invalid_key":
        return [problemAt(document, issue.path, named(sentence(issue.issues[0]?.message ?? issue.message)), "key")];
      default:
        return [problemAt(document, issue.path, named(sentence(issue.message)))];
    }
  }
}

function isTextExpected(issue: z.core.$ZodIssue): boolean {
  return issue.code === "invalid_type" && issue.expected === "string";
}

function putText(root: unknown, path: readonly PropertyKey[], text: string | undefined): boolean {
  const parent = valueAt(root, path.slice(0, -1));
  const name = path.at(-1);
  if (text === undefined || name === undefined || typeof parent !== "object" || parent === null) return false;
  (parent as Record<PropertyKey, unknown>)[name] = text;
  return true;
}

function valueAt(root: unknown, path: readonly PropertyKey[]): unknown {
  let value = root;
  for (const name of path) {
    if (typeof value !== "object" || value === null || !Object.hasOwn(value, name)) return undefined;
    value = (value as Record<PropertyKey, unknown>)[name];
  }
  return value;
}

const TYPES: Readonly<Record<string, string>> = {
  string: "a text",
  number: "a number",
  int: "a whole number",
  boolean: "true or false",
  array: "a list",
  object: "a map",
  record: "a map",
};

function typeMessage(issue: z.core.$ZodIssueInvalidType, root: unknown): string {
  const expected = TYPES[issue.expected] ?? issue.expected;
  const given = valueAt(root, issue.path);
  if (given === undefined) return `is missing; it must be ${expected}.`;
  return given === null ? `is empty; it must be ${expected}.` : `must be ${expected}.`;
}

function sentence(message: string): string {
  return /[.?!]$/.test(message) ? message : `${message}.`;
}

/** The keys of the object at a path, for suggestions. */
function knownKeys(schema: z.ZodType, path: readonly PropertyKey[]): readonly string[] {
  let current: z.core.$ZodType | undefined = schema;
  for (const name of path) {
    const bare = unwrapped(current);
    if (bare instanceof z.ZodObject) current = (bare.shape as Record<PropertyKey, z.core.$ZodType>)[name];
    else if (bare instanceof z.ZodRecord) current = bare.valueType;
    else if (bare instanceof z.ZodArray) current = bare.element;
    else return [];
  }
  const bare = unwrapped(current);
  return bare instanceof z.ZodObject ? Object.keys(bare.shape) : [];
}

function unwrapped(schema: z.core.$ZodType | undefined): z.core.$ZodType | undefined {
  let current = schema;
  while (current instanceof z.ZodOptional || current instanceof z.ZodDefault || current instanceof z.ZodNullable) {
    current = current.unwrap();
  }
  return current;
}

function inFileOrder(problems: readonly Problem[]): Problem[] {
  return problems.toSorted(
    (first, second) => (first.line ?? 0) - (second.line ?? 0) || (first.column ?? 0) - (second.column ?? 0),
  );
}
