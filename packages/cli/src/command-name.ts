import type { Io } from "./io.ts";

/** Whether the clone's TypeScript runs, and not an installed package. */
export const IS_CLONE = import.meta.url.endsWith(".ts");

/**
 * The command line that runs this command again. In the clone, and when npm started it, `sandboxer` need not be on
 * PATH.
 */
export function commandName({ env }: Pick<Io, "env">): string {
  return IS_CLONE || env["npm_command"] !== undefined ? "npx @sandboxer/cli" : "sandboxer";
}

/** Replaces `sandboxer` in the commands of a hint by what to type. */
export function asTyped(hint: string, io: Pick<Io, "env">): string {
  return hint.replaceAll(/(?<=^|`|\bsudo )sandboxer (?=[a-z-])/g, `${commandName(io)} `);
}
