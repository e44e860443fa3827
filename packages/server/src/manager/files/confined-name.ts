import { SandboxerError } from "@sandboxer/protocol";

/** The parts of a name in an archive, which must stay below the folder that it is unpacked into. */
export function confinedParts(name: string): string[] {
  if (name.startsWith("/")) throw refusedEntry(name, "is absolute");
  if (name.includes("\0")) throw refusedEntry(name, "contains a NUL");
  const parts = name.split("/").filter((part) => part !== "" && part !== ".");
  if (parts.includes("..")) throw refusedEntry(name, "leads outside the folder");
  return parts;
}

export function refusedEntry(name: string, why: string): SandboxerError {
  const shown = JSON.stringify(name.slice(0, 200));
  return new SandboxerError("bad_request", `The entry ${shown} of the tar archive ${why}.`, {
    hint: "Entries before it were unpacked. Create the archive with relative names of files, folders and links.",
    details: { entry: name.slice(0, 200) },
  });
}
