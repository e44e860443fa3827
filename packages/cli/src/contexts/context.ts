import { z } from "zod";
import { SandboxerError } from "@sandboxer/protocol/errors";

/** A server and the location of its key: a file, a variable, or a command that prints it. Never the key itself. */
const contextSchema = z
  .strictObject({
    url: z.url({ protocol: /^https?$/ }),
    api_key_file: z.string().min(1).optional(),
    api_key_env: z.string().min(1).optional(),
    api_key_command: z.array(z.string()).min(1).optional(),
  })
  .refine(
    ({ api_key_file, api_key_env, api_key_command }) =>
      [api_key_file, api_key_env, api_key_command].filter((given) => given !== undefined).length <= 1,
    "has more than one of api_key_file, api_key_env and api_key_command",
  );
export type Context = z.infer<typeof contextSchema>;

export const contextNameSchema = z.string().regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/);

/** The rest of the file belongs to the server. */
const fileSchema = z
  .looseObject({
    contexts: z.record(contextNameSchema, contextSchema).nullable().optional(),
    current_context: z.string().nullable().optional(),
  })
  .nullable();

export function parseContexts(
  content: unknown,
  path: string,
): { contexts: Record<string, Context>; current_context: string | undefined } {
  const parsed = fileSchema.safeParse(content ?? null);
  if (!parsed.success) {
    const problems = parsed.error.issues.map((issue) => `${issue.path.join(".")}: ${issue.message}`);
    throw new SandboxerError("bad_request", `${path}: ${problems.join("; ")}`, {
      hint: "Correct the file; docs/reference/cli.md describes the format of a context.",
    });
  }
  return { contexts: parsed.data?.contexts ?? {}, current_context: parsed.data?.current_context ?? undefined };
}
