import { SandboxerError } from "@sandboxer/protocol";

/** This server cannot decrypt it. */
export function keyUnavailable(message: string, details: Readonly<Record<string, unknown>> = {}): SandboxerError {
  return new SandboxerError("key_unavailable", message, { details });
}

export function keyRequired(wanted: string): SandboxerError {
  return new SandboxerError("key_required", `The data is encrypted with a client's own key (${wanted}).`, {
    details: { fingerprint: wanted },
  });
}

/** A different key was given than is needed. */
export function wrongKey(wanted: string, had: string, whose: string): SandboxerError {
  return new SandboxerError("wrong_key", `The data is encrypted with the key ${wanted}, but ${whose} is ${had}.`, {
    details: { fingerprint: wanted, given: had },
  });
}

const CODES = ["key_required", "wrong_key", "key_unavailable"];

/** Whether only a key is missing: encrypted data is not known to be damaged. */
export function isKeyProblem(error: unknown): boolean {
  return error instanceof SandboxerError && CODES.includes(error.code);
}
