import { isAbsolute } from "node:path";
import { SandboxerError } from "@sandboxer/protocol";
import type { SandboxSpec } from "../backend.ts";

/** The input of a sandbox that names its mounts: `SOURCE:TARGET[:ro|rw]`, separated by commas. */
export const MOUNTS_INPUT = "mounts";

/** A folder or file of the engine's machine that sandboxes may mount. */
export interface AllowedMount {
  readonly source: string;
  readonly writable: boolean;
}

export interface BindMount {
  readonly source: string;
  readonly target: string;
  readonly writable: boolean;
}

/**
 * The mounts that a sandbox requests. Only exactly the allowed paths can be mounted: below a writable folder a sandbox
 * may have put links that lead the engine elsewhere.
 */
export function mountsOf({ inputs }: SandboxSpec, allowed: readonly AllowedMount[]): BindMount[] {
  const texts = (inputs?.[MOUNTS_INPUT] ?? "").split(",").filter((text) => text.trim() !== "");
  return texts.map((text) => {
    const mount = parseMount(text.trim());
    const match = allowed.find(({ source }) => source === mount.source);
    if (match === undefined) throw refused(`The server does not allow sandboxes to mount ${mount.source}.`, allowed);
    if (mount.writable && !match.writable)
      throw refused(`The server allows sandboxes to mount ${mount.source} read-only.`, allowed);
    return mount;
  });
}

function parseMount(text: string): BindMount {
  const [source = "", target = "", mode = "ro", ...more] = text.split(":");
  const valid = isAbsolute(source) && isAbsolute(target) && /^r[ow]$/.test(mode) && more.length === 0;
  if (valid && target !== "/") return { source, target, writable: mode === "rw" };
  throw new SandboxerError("bad_request", `${JSON.stringify(text)} is not a mount.`, {
    hint: "Write mounts as SOURCE:TARGET:ro or SOURCE:TARGET:rw, with absolute paths, separated by commas.",
  });
}

function refused(message: string, allowed: readonly AllowedMount[]): SandboxerError {
  const list = allowed.map(({ source, writable }) => `${source} (${writable ? "read and write" : "read-only"})`);
  return new SandboxerError("permission_denied", message, {
    hint: list.length === 0 ? "The server allows no mounts." : `The server allows: ${list.join(", ")}.`,
  });
}
