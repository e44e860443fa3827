/** Names are snake_case on the wire and camelCase in TypeScript; user-defined names are unchanged. */

type CamelName<Name extends string> = Name extends `${infer Head}_${infer Tail}`
  ? `${Head}${Capitalize<CamelName<Tail>>}`
  : Name;

/** A wire record in TypeScript form. Maps with user-defined keys are unchanged. */
export type Camel<Value> = Value extends string | number | boolean | null | undefined
  ? Value
  : Value extends readonly (infer Item)[]
    ? Camel<Item>[]
    : Value extends object
      ? string extends keyof Value
        ? Value
        : { [Key in keyof Value as Key extends string ? CamelName<Key> : Key]: Camel<Value[Key]> }
      : Value;

/** The fields whose values are maps with user-defined keys. A test compares them with the protocol's schemas. */
const MAPS_IN_ANSWERS: ReadonlySet<string> = new Set([
  "capabilities",
  "chart",
  "data",
  "details",
  "environment",
  "extra",
  "labels",
  "phases",
  "prefer",
  "require",
  "result",
]);
const MAPS_IN_REQUESTS: ReadonlySet<string> = new Set(["env", "inputs", "labels", "prefer", "require"]);

export function fromWire<Value>(value: Value): Camel<Value> {
  return rename(value, MAPS_IN_ANSWERS, camelName) as Camel<Value>;
}

export function toWire<Value>(value: Camel<Value>): Value {
  return rename(value, MAPS_IN_REQUESTS, snakeName) as Value;
}

function rename(value: unknown, maps: ReadonlySet<string>, nameOf: (name: string) => string): unknown {
  if (Array.isArray(value)) return value.map((item) => rename(item, maps, nameOf));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, field]) => [
      nameOf(name),
      maps.has(name) ? (field as unknown) : rename(field, maps, nameOf),
    ]),
  );
}

function camelName(name: string): string {
  return name.replaceAll(/_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase());
}

function snakeName(name: string): string {
  return name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}
