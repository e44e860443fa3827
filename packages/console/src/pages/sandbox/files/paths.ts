/** Paths inside a sandbox: absolute, with anything between the slashes. */

/** The default working folder, where browsing starts. */
export const HOME = "/workspace";

/** As typed; a relative path starts at `from`. */
export function normalizePath(text: string, from = "/"): string {
  const parts: string[] = [];
  for (const part of (text.startsWith("/") ? text : `${from}/${text}`).split("/")) {
    if (part === "..") parts.pop();
    else if (part !== "" && part !== ".") parts.push(part);
  }
  return `/${parts.join("/")}`;
}

export function joinPath(folder: string, name: string): string {
  return folder === "/" ? `/${name}` : `${folder}/${name}`;
}

export function parentOf(path: string): string {
  return path.slice(0, Math.max(1, path.lastIndexOf("/")));
}

/** The root has no name but its slash. */
export function nameOf(path: string): string {
  return path === "/" ? "/" : path.slice(path.lastIndexOf("/") + 1);
}

interface Crumb {
  readonly name: string;
  readonly path: string;
}

/** Every parent folder from the root, and the last entry. */
export function crumbsOf(path: string): readonly Crumb[] {
  const crumbs: Crumb[] = [{ name: "/", path: "/" }];
  for (const name of path.split("/").filter((part) => part !== "")) {
    crumbs.push({ name, path: joinPath(crumbs.at(-1)?.path ?? "/", name) });
  }
  return crumbs;
}

const NAME_BYTES = 255;

/** Why a text is not a valid name in a folder; undefined: it is. */
export function nameProblem(name: string): string | undefined {
  if (name === "") return "Enter a name.";
  if (name === "." || name === "..") return `“${name}” is an existing folder.`;
  if (name.includes("/")) return "A name cannot contain a slash.";
  if (name.includes("\0")) return "A name cannot contain a zero byte.";
  if (new TextEncoder().encode(name).length > NAME_BYTES) return `A name can have at most ${NAME_BYTES} bytes.`;
  return undefined;
}
