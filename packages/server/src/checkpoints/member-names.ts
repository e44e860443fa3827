import { SandboxerError } from "@sandboxer/protocol";
import type { SnapshotMember } from "../backends/backend.ts";
import { imageDamaged } from "./image-errors.ts";

const SEGMENT = /^[A-Za-z0-9_-][A-Za-z0-9._-]{0,254}$/;

/** Checks that names from a backend can be unpacked again. */
export function checkMemberNames(members: readonly SnapshotMember[]): void {
  const seen = new Set<string>();
  for (const { name } of members) {
    if (!isMemberName(name)) throw new SandboxerError("internal", `"${name}" is not a valid name for an image member.`);
    if (seen.has(name)) throw new SandboxerError("internal", `The image would have two members "${name}".`);
    seen.add(name);
  }
}

/** A member's name is a unique relative path inside the folder that it is extracted to. */
export function checkNamesIn(image: string, members: readonly { readonly name: string }[]): void {
  const seen = new Set<string>();
  for (const { name } of members) {
    if (!isMemberName(name)) throw imageDamaged(image, "the name leads outside its folder", name);
    if (seen.has(name)) throw imageDamaged(image, "it occurs twice", name);
    seen.add(name);
  }
}

function isMemberName(name: string): boolean {
  return name.split("/").every((segment) => SEGMENT.test(segment));
}
