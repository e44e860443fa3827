import type { FileEntry } from "@sandboxer/client";
import { SandboxerError } from "@sandboxer/client";
import { fromWire } from "@sandboxer/client/transport";
import { signal } from "@preact/signals";
import { client } from "../../../session.ts";
import { parentOf } from "./paths.ts";

/** Counts local changes, so that the view is refreshed. */
export const changes = signal(0);

export function noteChange(): void {
  changes.value += 1;
}

export async function stat(id: string, path: string, signal_?: AbortSignal): Promise<FileEntry> {
  return fromWire(await client.call("statFile", { params: { id }, query: { path } }, { signal: signal_ }));
}

export async function list(id: string, path: string, signal_?: AbortSignal): Promise<readonly FileEntry[]> {
  const { items } = await client.call("listFiles", { params: { id }, query: { path } }, { signal: signal_ });
  return fromWire(items);
}

export async function readPart(
  id: string,
  path: string,
  range: { readonly offset: number; readonly length: number },
  signal_?: AbortSignal,
): Promise<Uint8Array<ArrayBuffer>> {
  const input = { params: { id }, query: { path, ...range } };
  return client.transport.read(
    "readFile",
    input,
    { signal: signal_ },
    async (response) => new Uint8Array(await response.arrayBuffer()),
  );
}

export async function write(id: string, path: string, text: string): Promise<void> {
  await client.call("writeFile", { params: { id }, query: { path }, body: new Blob([text]) });
}

export async function makeFolder(id: string, path: string): Promise<void> {
  await client.call("makeFolder", { params: { id }, body: { path, parents: true } });
}

export async function rename(id: string, from: string, to: string): Promise<void> {
  await client.call("renameFile", { params: { id }, body: { from, to } });
}

export async function remove(id: string, path: string, recursive: boolean): Promise<void> {
  await client.call("removeFile", { params: { id }, query: { path, recursive } });
}

/** The entry of a name in a folder; undefined: none. A direct request for a missing entry would be an error. */
export async function entryIn(id: string, folder: string, name: string): Promise<FileEntry | undefined> {
  return (await list(id, folder)).find((entry) => entry.name === name);
}

export interface Found {
  /** The entry behind all links. */
  readonly entry: FileEntry;
  /** Its path. Links in the middle are left to the sandbox. */
  readonly path: string;
  /** The requested link, if it was one. */
  readonly link: FileEntry | undefined;
}

const MAX_LINKS = 40;

/** Resolves a path to its target. */
export async function find(id: string, path: string, signal_?: AbortSignal): Promise<Found> {
  const first = await stat(id, path, signal_);
  let entry = first;
  let at = path;
  for (let links = 0; entry.kind === "symlink"; links += 1) {
    if (links === MAX_LINKS) throw new SandboxerError("bad_request", "This link is part of a loop of links.");
    const target = entry.linkTarget ?? "";
    at = target.startsWith("/") ? target : `${parentOf(at)}/${target}`;
    entry = await stat(id, at, signal_);
  }
  return { entry, path: at, link: first.kind === "symlink" ? first : undefined };
}
