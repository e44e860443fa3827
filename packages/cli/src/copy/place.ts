import { basename } from "node:path";

/** What is at the end of a copy before it begins. */
export type Found = "nothing" | "file" | "folder";

/**
 * Where a copy goes, as `cp -r` has it: into a folder that is there, under its own name; else to exactly that path.
 * A source that ends with `/.` is what the folder holds, and goes into the target itself.
 */
export function placeOf(source: string, target: string, found: Found): string {
  if (source.endsWith("/.")) return target;
  const name = basename(source);
  if (found === "folder" || target.endsWith("/")) return `${target.replace(/\/+$/, "")}/${name}`;
  return target;
}
