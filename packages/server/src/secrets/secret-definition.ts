import { z } from "zod";
import { secretNameSchema } from "@sandboxer/protocol";

/** The source of a secret in the config file. Never the value itself. */
const secretDefinitionSchema = z
  .strictObject({
    file: z.string().min(1).optional(),
    environment: z
      .string()
      .regex(/^[A-Za-z_][A-Za-z0-9_]*$/, "must be a variable name")
      .optional(),
    command: z.array(z.string()).min(1).optional(),
  })
  .refine((definition) => Object.keys(definition).length === 1, "must have one of file, environment and command.")
  .refine(({ command }) => command === undefined || command[0] !== "", {
    path: ["command", 0],
    message: "must be a program.",
  });

export const secretDefinitionsSchema = z.record(secretNameSchema, secretDefinitionSchema);
export type SecretDefinition = z.infer<typeof secretDefinitionSchema>;
export type SecretDefinitions = Readonly<Record<string, SecretDefinition>>;

/** For people: `file /run/secrets/token`. For a command only its program. */
export function describeSource({ file, environment, command }: SecretDefinition): string {
  if (file !== undefined) return `file ${file}`;
  return environment === undefined ? `command ${command?.[0] ?? ""}` : `environment ${environment}`;
}
