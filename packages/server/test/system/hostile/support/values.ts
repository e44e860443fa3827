import fc from "fast-check";

/** Stand for the ids of things that exist when an input is sent; see `HostileServer.fill`. */
export const PLACEHOLDERS = ["{{sandbox}}", "{{paused}}", "{{snapshot}}", "{{process}}", "{{token}}"] as const;

const ODD_TEXTS = [
  // Numbers, or nearly.
  "",
  "0",
  "-1",
  "1e999",
  "NaN",
  "9007199254740993",
  "true",
  "null",
  "undefined",
  "[object Object]",
  // Paths, or nearly.
  "/",
  "/tmp/x",
  "../../../../etc/passwd",
  "/proc/self/environ",
  "a\0b",
  "%00",
  "%2e%2e%2f",
  "%ff%fe",
  "\ud800",
  // Names that every object has, and words that mean something here.
  "__proto__",
  "constructor",
  "toString",
  "hasOwnProperty",
  "bash",
  "python",
  "fake",
  "gvisor",
  "echo hi",
  "(",
  // Durations, and what other interpreters might run.
  "1h",
  "-5s",
  "9999999999d",
  "*",
  "a b",
  "name\r\nx: y",
  "<script>",
  "${jndi:x}",
  "=1+1",
  "\u202e",
  "🏴‍☠️",
];

/** Texts that are near to something that works, or to something that has broken servers. */
export const text: fc.Arbitrary<string> = fc.oneof(
  { weight: 4, arbitrary: fc.constantFrom(...PLACEHOLDERS) },
  {
    weight: 4,
    arbitrary: fc.constantFrom(...ODD_TEXTS),
  },
  { weight: 2, arbitrary: fc.string({ maxLength: 30 }) },
  { weight: 2, arbitrary: fc.string({ unit: "binary", maxLength: 30 }) },
  { weight: 1, arbitrary: fc.constantFrom("x".repeat(300), "y".repeat(70_000), "é".repeat(5_000)) },
);

const number: fc.Arbitrary<number> = fc.oneof(
  fc.constantFrom(0, 1, -1, 0.5, 2 ** 31, 2 ** 53 - 1, 2 ** 53, -(2 ** 63), 1e308, 5e-324),
  fc.integer(),
  fc.double({ noNaN: true, noDefaultInfinity: true }),
);

export const anyValue: fc.Arbitrary<unknown> = fc.oneof(
  { depthSize: "small", maxDepth: 3, withCrossShrink: true },
  text,
  number,
  fc.constantFrom(null, true, false),
  fc.jsonValue({ maxDepth: 3 }),
  fc.array(text, { maxLength: 3 }),
  fc.dictionary(text, text, { maxKeys: 3 }),
);

/** JSON texts that cost a careless parser its stack or its memory. */
export const hardJson: fc.Arbitrary<string> = fc.oneof(
  fc.constantFrom(
    "[".repeat(100_000),
    `${"[".repeat(20_000)}${"]".repeat(20_000)}`,
    `${'{"a":'.repeat(20_000)}1${"}".repeat(20_000)}`,
    `{"__proto__":{"x":1},"constructor":{"prototype":{"y":1}}}`,
    `{"a":1,"a":2}`,
    `"\\ud800"`,
    `1e400`,
    `[${"0,".repeat(50_000)}0]`,
    `{${Array.from({ length: 5_000 }, (_, index) => `"k${index}":1`).join(",")}}`,
    "\ufeff{}",
    "{}garbage",
  ),
  anyValue.map((value) => JSON.stringify(value) ?? "null"),
);

interface Schema {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly anyOf?: readonly Schema[];
  readonly oneOf?: readonly Schema[];
  readonly allOf?: readonly Schema[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: Schema | boolean;
  readonly items?: Schema;
  readonly pattern?: string;
  readonly minimum?: number;
  readonly maximum?: number;
}
export type JsonSchema = Schema;

/** Values of a schema, with something wrong in about every eighth place, so that much gets past the validation. */
export function likeSchema(schema: Schema, depth = 0): fc.Arbitrary<unknown> {
  if (depth > 6) return anyValue;
  return fc.oneof({ weight: 7, arbitrary: ofSchema(schema, depth) }, { weight: 1, arbitrary: anyValue });
}

function ofSchema(schema: Schema, depth: number): fc.Arbitrary<unknown> {
  const choices = schema.anyOf ?? schema.oneOf ?? schema.allOf;
  if (choices !== undefined && choices.length > 0)
    return fc.oneof(...choices.map((choice) => likeSchema(choice, depth + 1)));
  if (schema.enum !== undefined && schema.enum.length > 0) return fc.constantFrom(...schema.enum);
  if ("const" in schema) return fc.constant(schema.const);
  switch (Array.isArray(schema.type) ? (schema.type as readonly string[])[0] : schema.type) {
    case "object":
      return objectOf(schema, depth);
    case "array":
      return fc.array(likeSchema(schema.items ?? {}, depth + 1), { maxLength: 3 });
    case "string":
      return schema.pattern === undefined ? text : fc.oneof(fc.stringMatching(new RegExp(schema.pattern)), text);
    case "boolean":
      return fc.boolean();
    case "integer":
      return fc.oneof(fc.integer({ min: clamp(schema.minimum ?? 0), max: clamp(schema.maximum ?? 100) }), number);
    case "number":
      return number;
    default:
      return anyValue;
  }
}

/** Few of the optional parts at a time: of many one would be wrong every time. */
function objectOf(schema: Schema, depth: number): fc.Arbitrary<unknown> {
  const { properties = {}, required = [], additionalProperties: more } = schema;
  const names = Object.keys(properties);
  if (names.length === 0) {
    return fc.dictionary(text, typeof more === "object" ? likeSchema(more, depth + 1) : anyValue, { maxKeys: 3 });
  }
  const values = Object.fromEntries(names.map((name) => [name, likeSchema(properties[name] ?? {}, depth + 1)]));
  return fc.subarray(names, { maxLength: Math.min(3, names.length) }).chain((chosen) => {
    const kept = new Set([...chosen, ...required.filter((name) => name in values)]);
    return fc.record(Object.fromEntries([...kept].map((name) => [name, values[name] ?? anyValue])));
  });
}

function clamp(bound: number): number {
  return Math.min(1_000, Math.max(-1_000, Math.ceil(bound)));
}
