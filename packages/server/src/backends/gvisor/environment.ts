import type { SandboxSpec } from "../backend.ts";
import type { RootFilesystemDefaults } from "./root-filesystem/root-filesystem.ts";

/** The variables of programs inside, beyond those of every sandbox and of its user: the request's before the image's. */
export function environmentOf(
  { env }: Pick<SandboxSpec, "env">,
  defaults: RootFilesystemDefaults | undefined,
): Record<string, string> {
  return { ...defaults?.env, ...env };
}
