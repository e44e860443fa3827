import { basename } from "node:path";

/** The target of a copy before it begins. */
export type Found = "nothing" | "file" | "folder";

/**
 * The target path, as for `cp -r`: an existing folder gets the source under its own name; otherwise exactly that path.
 * A source that ends with `/.` means the contents of the folder, which go into the target itself.
 */
export function placeOf(source: string, target: string, found: Found): string {
  if (source.endsWith("/.")) return target;
  const name = basename(source);
  if (found === "folder" || target.endsWith("/")) return `${target.replace(/\/+$/, "")}/${name}`;
  return target;
}
