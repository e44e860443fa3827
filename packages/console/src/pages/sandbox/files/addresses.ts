import type { SandboxRecord } from "@sandboxer/client";
import { query } from "../../../router.tsx";
import { sandboxPath } from "../tabs.tsx";

/** The console's URL of a path; list settings are kept. */
export function filesAddress(id: string, path: string): string {
  const wanted = new URLSearchParams({ path });
  for (const name of ["sort", "order", "hidden"]) {
    const value = query.value.get(name);
    if (value !== null) wanted.set(name, value);
  }
  return `${sandboxPath(id, "files")}?${wanted.toString()}`;
}

/** The download URL: a folder is a tar archive. */
export function downloadAddress(id: SandboxRecord["id"], path: string, what: "file" | "folder"): string {
  // A link has no headers: the permission to relay is in the URL.
  const wanted = new URLSearchParams({ path, relay: "allow" });
  return `/v1/sandboxes/${encodeURIComponent(id)}/${what === "file" ? "files" : "tree"}?${wanted.toString()}`;
}
