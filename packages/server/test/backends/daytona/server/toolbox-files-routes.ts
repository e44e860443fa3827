import { posix } from "node:path";
import type { FileInfo } from "@daytona/toolbox-api-client";
import type { FileEntry, SandboxFiles } from "../../../../src/backends/backend.ts";
import { type Answer, parameter, Refusal, type SeenRequest } from "./exchange.ts";

const MAX_LINKS = 10;

/** The daemon's files, which follow links, over the files of a real sandbox. */
export async function handleFiles(
  files: SandboxFiles,
  request: SeenRequest,
  path: string,
): Promise<Answer | undefined> {
  switch (`${request.method} ${path}`) {
    case "GET /files":
      return { status: 200, json: await list(files, parameter(request, "path")) };
    case "GET /files/info":
      return { status: 200, json: await info(files, parameter(request, "path")) };
    case "GET /files/download":
      return download(files, request);
    case "POST /files/upload-v2":
      return upload(files, request);
    case "POST /files/folder":
      await files.makeFolder(parameter(request, "path"), { parents: true });
      return { status: 201 };
    case "DELETE /files":
      return remove(files, request);
    case "POST /files/move":
      return move(files, request);
    case "POST /files/permissions": {
      const at = parameter(request, "path");
      await followed(files, at);
      await files.set(at, { mode: Number.parseInt(parameter(request, "mode"), 8) });
      return { status: 200 };
    }
    default:
      return undefined;
  }
}

async function followed(files: SandboxFiles, path: string): Promise<FileEntry> {
  let [at, entry] = [path, await files.stat(path)];
  for (let links = 0; entry.kind === "symlink" && links < MAX_LINKS; links++) {
    at = posix.resolve(posix.dirname(at), entry.linkTarget ?? "");
    entry = await files.stat(at);
  }
  return { ...entry, name: posix.basename(path) };
}

async function info(files: SandboxFiles, path: string): Promise<FileInfo> {
  return describe(await followed(files, path));
}

/** Dangling links are left out. */
async function list(files: SandboxFiles, path: string): Promise<FileInfo[]> {
  const entries = await files.list(path);
  const found = await Promise.allSettled(entries.map(({ name }) => info(files, posix.join(path, name))));
  return found.flatMap((outcome) => (outcome.status === "fulfilled" ? [outcome.value] : []));
}

async function download(files: SandboxFiles, request: SeenRequest): Promise<Answer> {
  const path = parameter(request, "path");
  const entry = await followed(files, path);
  if (entry.kind === "folder") throw new Refusal(400, "path must be a file");
  const range = /^bytes=(\d+)-(\d*)$/.exec(request.headers.range ?? "");
  const headers = { "content-type": "application/octet-stream" };
  if (range === null) return { status: 200, headers, bytes: files.read(path) };
  const offset = Number(range[1]);
  if (offset >= entry.sizeBytes) throw new Refusal(416, "invalid range: failed to overlap");
  const last = range[2] === "" ? entry.sizeBytes - 1 : Math.min(Number(range[2]), entry.sizeBytes - 1);
  return { status: 206, headers, bytes: files.read(path, { offset, length: last - offset + 1 }) };
}

/** A form with a file, or the bytes themselves. Missing folders are created. */
async function upload(files: SandboxFiles, request: SeenRequest): Promise<Answer> {
  const path = parameter(request, "path");
  const type = request.headers["content-type"] ?? "";
  const content = type.startsWith("multipart/form-data") ? await fieldOf(request.body, type) : request.body;
  await files.makeFolder(posix.dirname(path), { parents: true });
  await files.write(path, content);
  return { status: 200, json: { name: posix.basename(path), path, type: "file" } };
}

async function fieldOf(body: Buffer, type: string): Promise<Uint8Array> {
  const form = await new Response(new Uint8Array(body), { headers: { "content-type": type } }).formData();
  const file = form.get("file");
  if (!(file instanceof File)) throw new Refusal(400, "http: no such file");
  return new Uint8Array(await file.arrayBuffer());
}

async function remove(files: SandboxFiles, request: SeenRequest): Promise<Answer> {
  const path = parameter(request, "path");
  const recursive = request.query.get("recursive") === "true";
  const entry = await followed(files, path);
  if (entry.kind === "folder" && !recursive) throw new Refusal(400, "cannot delete directory without recursive flag");
  await files.remove(path, { recursive });
  return { status: 204 };
}

async function move(files: SandboxFiles, request: SeenRequest): Promise<Answer> {
  const [source, destination] = [parameter(request, "source"), parameter(request, "destination")];
  await followed(files, source);
  const taken = await followed(files, destination).then(
    () => true,
    () => false,
  );
  if (taken) throw new Refusal(409, "destination already exists", "CONFLICT");
  await files.rename(source, destination);
  return { status: 200 };
}

function describe(entry: FileEntry): FileInfo {
  const letters = [8, 7, 6, 5, 4, 3, 2, 1, 0].map((bit) => ((entry.mode >> bit) & 1 ? "rwx"[2 - (bit % 3)] : "-"));
  const modified = new Date(entry.modifiedMs);
  return {
    name: entry.name,
    size: entry.sizeBytes,
    mode: `${entry.kind === "folder" ? "d" : "-"}${letters.join("")}`,
    modTime: `${modified.toISOString().replace("T", " ").replace("Z", "")} +0000 UTC`,
    modifiedAt: modified.toISOString(),
    isDir: entry.kind === "folder",
    owner: String(entry.uid),
    group: String(entry.gid),
    permissions: (entry.mode & 0o777).toString(8).padStart(4, "0"),
  };
}
