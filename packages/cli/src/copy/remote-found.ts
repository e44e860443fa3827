import type { Sandbox } from "@sandboxer/client";
import { SandboxerError } from "@sandboxer/protocol/errors";
import type { Found } from "./place.ts";

export async function remoteFound(sandbox: Sandbox, path: string): Promise<Found> {
  try {
    const { kind } = await sandbox.files.stat(path);
    // Only a folder has paths below it: this follows a link.
    if (kind === "symlink") {
      return await sandbox.files.list(path).then(
        () => "folder" as const,
        () => "file" as const,
      );
    }
    return kind === "folder" ? "folder" : "file";
  } catch (error) {
    if (error instanceof SandboxerError && error.code === "file_not_found") return "nothing";
    throw error;
  }
}
