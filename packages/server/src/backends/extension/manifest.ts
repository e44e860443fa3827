import { readFile } from "node:fs/promises";
import { basename } from "node:path";
import { backendNameSchema, SandboxerError } from "@sandboxer/protocol";
import { parseDocument } from "yaml";
import { z } from "zod";

const entrySchema = z.strictObject({
  name: backendNameSchema,
  /** An npm package, or a path that begins with `.` or `/`; relative to the manifest's folder. */
  module: z
    .string()
    .min(1)
    .regex(/^[^\0\n]+$/),
  /** Passed to the extension when it is created. */
  options: z.record(z.string(), z.unknown()).default({}),
});
const manifestSchema = z.strictObject({ extensions: z.array(entrySchema) });

export type ManifestEntry = z.infer<typeof entrySchema>;

/** Reads a YAML or JSON manifest, or the part `sandboxer` of a package.json. */
export async function readManifest(path: string): Promise<readonly ManifestEntry[]> {
  let text: string;
  try {
    text = await readFile(path, "utf8");
  } catch (thrown) {
    throw wrong(path, `cannot be read: ${(thrown as Error).message}`, thrown);
  }
  const document = parseDocument(text);
  const [problem] = document.errors;
  if (problem !== undefined) throw wrong(path, `is not YAML or JSON: ${problem.message.split("\n")[0]}`);
  const content: unknown = document.toJS({ maxAliasCount: 10 });
  const result = manifestSchema.safeParse(basename(path) === "package.json" ? partOfPackage(content) : content);
  if (!result.success) throw wrong(path, explain(result.error));
  const names = result.data.extensions.map(({ name }) => name);
  const twice = names.find((name, at) => names.indexOf(name) !== at);
  if (twice !== undefined) throw wrong(path, `names the extension ${twice} twice`);
  return result.data.extensions;
}

export function wrong(path: string, what: string, cause?: unknown): SandboxerError {
  return new SandboxerError("bad_request", `${path} ${what}.`, {
    cause,
    hint: "See docs/reference/extensions.md for an example of a manifest.",
  });
}

/** The first error, with its path. */
export function explain(error: z.ZodError): string {
  const [issue] = error.issues;
  const where = issue?.path.join(".") ?? "";
  return `${where === "" ? "" : `is invalid at ${where}: `}${issue?.message ?? "is invalid"}`;
}

function partOfPackage(content: unknown): unknown {
  return typeof content === "object" && content !== null && "sandboxer" in content
    ? content.sandboxer
    : { extensions: [] };
}
