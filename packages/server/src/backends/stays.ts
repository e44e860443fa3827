import { asSandboxerError, SandboxerError } from "@sandboxer/protocol";

/** Reports what is left behind where a snapshot was to be removed, and why. */
export function stays(what: string, thrown: unknown): SandboxerError {
  const { code, message, hint, details } = asSandboxerError(thrown);
  return new SandboxerError(code, `${what} stays: ${message}`, {
    cause: thrown,
    hint: `Nothing on this server references it any more; remove it there by hand. ${hint}`,
    details,
  });
}
