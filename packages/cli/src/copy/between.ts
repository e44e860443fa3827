import type { Sandbox } from "@sandboxer/client";
import type { ProgressLine } from "../output/progress.ts";
import { counted } from "./counted.ts";
import { placeOf } from "./place.ts";
import { remoteFound } from "./remote-found.ts";
import type { Copied } from "./upload.ts";

/** From one sandbox to another, through this machine's memory but not its disk. */
export async function between(
  from: { readonly sandbox: Sandbox; readonly path: string },
  to: { readonly sandbox: Sandbox; readonly path: string },
  line: ProgressLine,
): Promise<Copied> {
  const path = from.path.replace(/\/\.$/, "") || "/";
  const { kind, mode, sizeBytes } = await from.sandbox.files.stat(path);
  const place = placeOf(from.path, to.path, await remoteFound(to.sandbox, to.path));
  if (kind === "folder") {
    const tar = counted(await from.sandbox.files.downloadTar(path), line, "copy", null);
    return { from: from.path, to: place, ...(await to.sandbox.files.uploadTar(place, tar)) };
  }
  const bytes = counted(await from.sandbox.files.readStream(path), line, "copy", sizeBytes);
  await to.sandbox.files.write(place, bytes, { mode: mode & 0o777 });
  return { from: from.path, to: place, files: 1, bytes: sizeBytes };
}
