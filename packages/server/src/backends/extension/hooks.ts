import { SandboxerError } from "@sandboxer/protocol";
import type { CallOptions } from "../../support/call-options.ts";
import type { ExtensionTools, SandboxExtension } from "./extension.ts";

export function toolsOf(options: CallOptions = {}): ExtensionTools {
  return {
    signal: options.signal ?? new AbortController().signal,
    progress: (progress) => options.onProgress?.(progress),
  };
}

/** The error for a missing hook. */
export function lacking(extension: SandboxExtension, what: string): SandboxerError {
  return new SandboxerError("not_supported", `The backend ${extension.name} has no ${what}.`);
}

/** An extension may throw anything; its users get one error class, with the extension's name. */
export function asExtensionError(extension: SandboxExtension, thrown: unknown): SandboxerError {
  if (thrown instanceof SandboxerError) return thrown;
  const reason = thrown instanceof Error ? thrown.message : String(thrown);
  return new SandboxerError("backend_unavailable", `The backend ${extension.name} failed: ${reason}`, {
    cause: thrown,
    hint: `See the documentation of the extension ${extension.name} and the server's log.`,
  });
}
