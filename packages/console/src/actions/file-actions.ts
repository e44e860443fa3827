import { spell } from "./sandbox-actions.ts";
import { literal, type Spellings } from "./spellings.ts";

const at = (route: string, path: string, more: Readonly<Record<string, string>> = {}): string =>
  `/${route}?${new URLSearchParams({ path, ...more }).toString()}`;

/** A local file name that cannot be mistaken for an option. */
const local = (path: string): string => `./${path.slice(path.lastIndexOf("/") + 1) || "root"}`;

/** Actions on the files of a sandbox, in other forms. */
export const fileSpellings = {
  list: (id: string, path: string): Spellings =>
    spell(["files", "ls", `${id}:${path}`], [`console.log(await sandbox.files.list(${literal(path)}));`], id, {
      method: "GET",
      path: at("files/list", path),
    }),
  read: (id: string, path: string): Spellings =>
    spell(["cp", `${id}:${path}`, local(path)], [`const bytes = await sandbox.files.read(${literal(path)});`], id, {
      method: "GET",
      path: at("files", path),
      flags: ["-o", local(path)],
    }),
  write: (id: string, path: string): Spellings =>
    spell(
      ["cp", local(path), `${id}:${path}`],
      [
        'const { readFile } = await import("node:fs/promises");',
        `await sandbox.files.write(${literal(path)}, await readFile(${literal(local(path))}));`,
      ],
      id,
      {
        method: "PUT",
        path: at("files", path, { parents: "true" }),
        flags: ["-H", "content-type: application/octet-stream", "--data-binary", `@${local(path)}`],
      },
    ),
  makeFolder: (id: string, path: string): Spellings =>
    spell(["files", "mkdir", `${id}:${path}`], [`await sandbox.files.mkdir(${literal(path)});`], id, {
      method: "POST",
      path: "/files/folder",
      body: { path },
    }),
  rename: (id: string, from: string, to: string): Spellings =>
    spell(["files", "mv", `${id}:${from}`, to], [`await sandbox.files.rename(${literal(from)}, ${literal(to)});`], id, {
      method: "POST",
      path: "/files/rename",
      body: { from, to },
    }),
  remove: (id: string, path: string, recursive: boolean): Spellings =>
    spell(
      ["files", "rm", ...(recursive ? ["-r"] : []), `${id}:${path}`],
      [`await sandbox.files.remove(${literal(path)}${recursive ? ", { recursive: true }" : ""});`],
      id,
      { method: "DELETE", path: at("files", path, recursive ? { recursive: "true" } : {}) },
    ),
  download: (id: string, path: string): Spellings =>
    spell(
      ["cp", `${id}:${path}`, local(path)],
      [
        'const { downloadFolder } = await import("@sandboxer/client/node");',
        `await downloadFolder(sandbox, ${literal(path)}, ${literal(local(path))});`,
      ],
      id,
      { method: "GET", path: at("tree", path), flags: ["-o", `${local(path)}.tar`] },
    ),
  upload: (id: string, path: string): Spellings =>
    spell(
      ["cp", "./folder/.", `${id}:${path}`],
      [
        'const { uploadFolder } = await import("@sandboxer/client/node");',
        `await uploadFolder(sandbox, "./folder", ${literal(path)});`,
      ],
      id,
      {
        method: "PUT",
        path: at("tree", path),
        flags: ["-H", "content-type: application/x-tar", "--data-binary", "@folder.tar"],
      },
    ),
};
