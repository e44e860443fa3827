/**
 * Whole folders between this machine and a sandbox. Node only: it reads and writes local files.
 *
 * ```ts
 * import { downloadFolder, uploadFolder } from "@sandboxer/client/node";
 * ```
 */
import type { Sandbox } from "../sandbox.ts";
import type { UploadResult } from "../sandbox-files.ts";
import type { CallOptions } from "../wire/call-types.ts";
import { connectPort, forwardPort, type ForwardedPort, type ForwardOptions } from "./forward-port.ts";
import { packFolder, type PackOptions } from "./pack-folder.ts";
import { unpackFolder, type UnpackResult } from "./unpack-folder.ts";

export { connectPort, forwardPort, type ForwardedPort, type ForwardOptions };
export { packFolder, unpackFolder, type PackOptions, type UnpackResult };

/** Uploads the contents of a local folder to a folder of the sandbox, which is created if missing. */
export async function uploadFolder(
  sandbox: Sandbox,
  localFolder: string,
  path: string,
  options: CallOptions & PackOptions = {},
): Promise<UploadResult> {
  const { filter, ...call } = options;
  return sandbox.files.uploadTar(path, packFolder(localFolder, { filter }), call);
}

/** Downloads the contents of a folder of the sandbox to a local folder, which is created if missing. */
export async function downloadFolder(
  sandbox: Sandbox,
  path: string,
  localFolder: string,
  options: CallOptions & { readonly skipUnreadable?: boolean | undefined } = {},
): Promise<UnpackResult> {
  const tar = await sandbox.files.downloadTar(path, options);
  return unpackFolder(tar, localFolder);
}
