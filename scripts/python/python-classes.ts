import type { Schema } from "./schema.ts";

/** Names that the SDK gives to the document's schemas, as in TypeScript; others keep theirs. */
const NAMES: Readonly<Record<string, string>> = {
  Sandbox: "SandboxRecord",
  Snapshot: "SnapshotRecord",
  Image: "ImageRecord",
  Operation: "OperationRecord",
  Event: "EventRecord",
  Process: "ProcessRecord",
  Server: "ServerRecord",
  Backend: "BackendRecord",
  Instance: "InstanceRecord",
  Handoff: "HandoffRecord",
  Promotion: "PromotionRecord",
  Diff: "SnapshotDiff",
  Stats: "SandboxStats",
  Upload: "UploadResult",
  ListUsageItem: "UsageRecord",
  ProcessTableItem: "ProcessTableEntry",
};

const KEYWORDS: ReadonlySet<string> = new Set(["from", "class", "import", "global", "is", "in", "not", "pass", "with"]);
const LINE_LENGTH = 120;

type Kind = "answer" | "settings";

/** Writes the classes of schemas, each before those that use it. */
export class PythonClasses {
  readonly #schemas: Readonly<Record<string, Schema>>;
  readonly #texts = new Map<string, string>();
  /** The class of each schema: equal ones share it. */
  readonly #shapes = new Map<string, string>();

  constructor(schemas: Readonly<Record<string, Schema>>) {
    this.#schemas = schemas;
  }

  get names(): string[] {
    return [...this.#texts.keys()].toSorted();
  }

  get text(): string {
    return [...this.#texts.values()].join("\n\n");
  }

  /** The answer of a call. The SDK takes the items out of pages, so a page needs no class. */
  addAnswer(operation: string, schema: Schema): void {
    const name = capitalised(operation);
    if (schema.properties?.["items"] === undefined) return void this.#typeOf(schema, name, "answer");
    for (const [field, part] of Object.entries(schema.properties)) {
      this.#typeOf(part, name + capitalised(field), "answer");
    }
  }

  /** Typed keyword arguments, or a body. */
  addSettings(name: string, schema: Schema): void {
    const { schema: resolved } = this.#resolved(schema);
    this.#add(name, resolved, "settings");
  }

  #typeOf(schema: Schema, hint: string, kind: Kind): string {
    const { schema: resolved, name } = this.#resolved(schema);
    const ownName = name ?? NAMES[hint] ?? hint;
    if (resolved.enum !== undefined) return `Literal[${resolved.enum.map(literal).join(", ")}]`;
    if (resolved.const !== undefined) return `Literal[${literal(resolved.const)}]`;
    const choices = resolved.anyOf ?? resolved.oneOf;
    if (choices !== undefined) return union(choices.map((choice) => this.#typeOf(choice, ownName, kind)));
    const types = typeof resolved.type === "string" ? [resolved.type] : (resolved.type ?? []);
    return union(types.length === 0 ? ["Any"] : types.map((type) => this.#plain(type, resolved, ownName, kind)));
  }

  #plain(type: string, schema: Schema, name: string, kind: Kind): string {
    switch (type) {
      case "string":
        return "str";
      case "integer":
        return "int";
      case "number":
        return "float";
      case "boolean":
        return "bool";
      case "null":
        return "None";
      case "array":
        return `list[${this.#typeOf(schema.items ?? {}, singular(name), kind)}]`;
      case "object":
        return this.#object(schema, name, kind);
      default:
        throw new Error(`Python has no type for ${type}.`);
    }
  }

  #object(schema: Schema, name: string, kind: Kind): string {
    const { properties, additionalProperties: other } = schema;
    if (properties !== undefined && (other === undefined || typeof other === "boolean")) {
      return this.#add(name, schema, kind);
    }
    const values = typeof other === "object" && properties === undefined ? other : {};
    return `dict[str, ${this.#typeOf(values, `${name}Value`, kind)}]`;
  }

  #add(name: string, schema: Schema, kind: Kind): string {
    const shape = `${kind} ${JSON.stringify(schema)}`;
    const same = this.#shapes.get(shape);
    if (same !== undefined) return same;
    if (this.#texts.has(name)) throw new Error(`Two different schemas would be called ${name} in Python.`);
    this.#shapes.set(shape, name);
    const required = new Set(schema.required);
    const fields = Object.entries(schema.properties ?? {}).map(([field, part]) => {
      const inner = kind === "answer" ? name.replace(/Record$/, "") + capitalised(field) : `${capitalised(field)}Input`;
      const type = this.#typeOf(part, inner, kind);
      const described = part.description === undefined ? "" : comment(part.description);
      return `${described}    ${fieldName(field)}: ${fieldType(type, required.has(field), kind)}\n`;
    });
    const head =
      kind === "answer"
        ? `@dataclass(frozen=True, kw_only=True)\nclass ${name}:\n`
        : `class ${name}(TypedDict, total=False):\n`;
    this.#texts.set(name, head + (fields.join("") || "    pass\n"));
    return name;
  }

  #resolved(schema: Schema): { schema: Schema; name?: string } {
    if (schema.$ref === undefined) return { schema };
    const plain = schema.$ref.replace("#/components/schemas/", "");
    const found = this.#schemas[plain];
    if (found === undefined) throw new Error(`The document has no schema ${plain}.`);
    return found.$ref === undefined ? { schema: found, name: NAMES[plain] ?? plain } : this.#resolved(found);
  }
}

function fieldType(type: string, isRequired: boolean, kind: Kind): string {
  if (kind === "settings") return isRequired ? `Required[${type}]` : type;
  return isRequired ? type : union([type, "None"]);
}

function union(types: readonly string[]): string {
  const parts = new Set(types.flatMap((type) => type.split(" | ")));
  if (parts.has("Any")) return "Any";
  // An int is a float to type checkers.
  const known = [...parts].filter((part) => part !== "None" && !(part === "int" && parts.has("float")));
  return [...known, ...(parts.has("None") ? ["None"] : [])].join(" | ");
}

function comment(text: string): string {
  const lines: string[] = [];
  let line = "    #:";
  for (const word of text.replaceAll(/\bnull\b/g, "None").split(/\s+/)) {
    if (line.length + word.length >= LINE_LENGTH) {
      lines.push(line);
      line = "    #:";
    }
    line += ` ${word}`;
  }
  return `${[...lines, line].join("\n")}\n`;
}

function fieldName(name: string): string {
  return KEYWORDS.has(name) ? `${name}_` : name;
}

function literal(value: unknown): string {
  return value === null ? "None" : typeof value === "boolean" ? (value ? "True" : "False") : JSON.stringify(value);
}

function capitalised(name: string): string {
  return name.replaceAll(/(?:^|_)([a-z0-9])/g, (_, letter: string) => letter.toUpperCase());
}

function singular(name: string): string {
  if (name.endsWith("ies")) return `${name.slice(0, -3)}y`;
  return name.endsWith("s") && !name.endsWith("ss") && !name.endsWith("Stats") ? name.slice(0, -1) : name;
}
