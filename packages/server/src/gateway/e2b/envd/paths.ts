import { posix } from "node:path";
import { SandboxerError } from "@sandboxer/protocol";

/** The longest path that the kernel takes. */
const MAX_PATH_BYTES = 4096;

/** A path as E2B's clients give it: empty and `~` are the home, and relative ones are below it. */
export function absolutePath(home: string, path: string): string {
  if (path.includes("\0")) throw new SandboxerError("bad_request", "A path cannot contain NUL.");
  if (Buffer.byteLength(path) > MAX_PATH_BYTES) throw new SandboxerError("bad_request", "The path is too long.");
  if (path === "" || path === "~") return home;
  if (path.startsWith("~") && !path.startsWith("~/")) {
    throw new SandboxerError("bad_request", `The home of another user cannot be named: ${JSON.stringify(path)}.`, {
      hint: "Use ~/ for the user's own home, or an absolute path.",
    });
  }
  const below = path.startsWith("~/") ? path.slice(2) : path;
  return posix.resolve(home, below);
}
