import { DEFAULT_ENVIRONMENT } from "../agent/user-space.ts";
import type { SandboxSpec } from "../backend.ts";
import type { RootFilesystemDefaults } from "./root-filesystem/root-filesystem.ts";

/** The variables of programs inside: the request's come before the image's, and those before the server's. */
export function environmentOf(
  { env }: Pick<SandboxSpec, "env">,
  defaults: RootFilesystemDefaults | undefined,
): Record<string, string> {
  return { ...DEFAULT_ENVIRONMENT, ...defaults?.env, ...env };
}
