import { SandboxerError } from "@sandboxer/protocol";

/** Failures of what is stored concern one object. All others end the collection. */
export function isStoreFailure(error: unknown): boolean {
  const ofContent = ["image_damaged", "not_supported", "bad_request"];
  return !(error instanceof SandboxerError) || !ofContent.includes(error.code);
}
