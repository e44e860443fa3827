import type { SandboxRecord } from "@sandboxer/client";
import { query } from "../../../router.tsx";
import { sandboxPath } from "../tabs.tsx";

/** Where the console shows a path; how lists are shown stays as it is. */
export function filesAddress(id: string, path: string): string {
  const wanted = new URLSearchParams({ path });
  for (const name of ["sort", "order", "hidden"]) {
    const value = query.value.get(name);
    if (value !== null) wanted.set(name, value);
  }
  return `${sandboxPath(id, "files")}?${wanted.toString()}`;
}

/** Where the browser itself fetches it, byte by byte onto the disk: a folder as a tar. */
export function downloadAddress(id: SandboxRecord["id"], path: string, what: "file" | "folder"): string {
  // A link has no headers: that the call may be passed on to the server that has the sandbox is in the address.
  const wanted = new URLSearchParams({ path, relay: "allow" });
  return `/v1/sandboxes/${encodeURIComponent(id)}/${what === "file" ? "files" : "tree"}?${wanted.toString()}`;
}
