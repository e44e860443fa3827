import { posix } from "node:path";
import type { Readable } from "node:stream";
import { createGunzip, createGzip } from "node:zlib";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { asSandboxerError } from "@sandboxer/protocol";
import type { UserFiles } from "../../../manager/files/user-files.ts";
import { UnknownUserError } from "../../../manager/files/user-space.ts";
import { bodyBytes } from "../../http/body-bytes.ts";
import { ENVD_PORT } from "../e2b-router.ts";
import { E2bError } from "../errors.ts";
import type { E2bServices } from "../e2b-services.ts";
import { metadataOf } from "./entry-view.ts";
import type { FileAccess, FileQuery } from "./file-access.ts";
import { metadataIn } from "./file-metadata.ts";
import { fileParts, type FilePart } from "./multipart.ts";
import { absolutePath } from "./paths.ts";
import { rangeOf } from "./byte-range.ts";

const OCTETS = "application/octet-stream";
const FORM = "multipart/form-data";

interface FileRoute {
  Querystring: FileQuery;
}

/** The content of files: `/files`, with a token or a signed URL. Nothing is kept in memory. */
export function registerFileRoutes(app: FastifyInstance, services: E2bServices, access: FileAccess): void {
  for (const type of [OCTETS, FORM]) {
    app.addContentTypeParser(type, (_request, payload: Readable, done) => done(null, payload));
  }

  app.get<FileRoute>("/files", (request, reply) =>
    answer(request, reply, "read", (files, path) => sendFile(files, path, request, reply)),
  );
  app.post<FileRoute>("/files", (request, reply) =>
    answer(request, reply, "write", (files, path) => receiveFiles(files, path, request)),
  );

  const answer = async (
    request: FastifyRequest<FileRoute>,
    reply: FastifyReply,
    operation: "read" | "write",
    work: (files: UserFiles, path: string | undefined) => Promise<unknown>,
  ): Promise<unknown> => {
    const { sandboxId, user } = await access.allow(request, operation);
    if (request.e2bTarget?.sandboxId === undefined) {
      // Only now it is known which sandbox a signed URL is about.
      const path = `/files${/\?.*/.exec(request.originalUrl)?.[0] ?? ""}`;
      const passed = await services.relay.pass(request, reply, { sandboxId, path, port: ENVD_PORT });
      if (passed !== undefined) return passed;
    }
    return asFileErrors(async () => {
      const sandbox = await services.running(sandboxId);
      services.manager.touch(sandbox);
      return work(await services.manager.files.ofUser(sandbox, user), request.query.path);
    });
  };
}

async function sendFile(
  files: UserFiles,
  given: string | undefined,
  { headers, raw }: FastifyRequest,
  reply: FastifyReply,
): Promise<FastifyReply> {
  const path = absolutePath(files.account.home, given ?? "");
  const accepted = headers["accept-encoding"] ?? "";
  const file = await files.read(path);
  const { sizeBytes } = file;
  const name = encodeURIComponent(posix.basename(path).toWellFormed());
  reply.type(OCTETS).header("content-disposition", `inline; filename*=UTF-8''${name}`).header("accept-ranges", "bytes");
  const range = headers.range === undefined ? undefined : rangeOf(headers.range, sizeBytes);
  if (range === "unsatisfiable") {
    throw new E2bError(416, "The range is outside of the file.");
  }
  const { start, length } = range ?? { start: 0, length: sizeBytes };
  // Only for a client that asks for it by name: compression takes the server's time.
  if (range === undefined && /^\s*gzip\s*$/i.test(accepted)) {
    const body = closedWith(raw, file.open({}));
    return reply.header("content-encoding", "gzip").send(body.pipe(createGzip()).on("error", () => body.destroy()));
  }
  if (/\bidentity\s*;\s*q=0(?:\.0*)?(?:\s*,|\s*$)/i.test(accepted)) {
    throw new E2bError(406, "The file can be sent as it is, or with gzip alone.");
  }
  if (range !== undefined) reply.code(206).header("content-range", `bytes ${start}-${start + length - 1}/${sizeBytes}`);
  reply.header("content-length", length);
  return reply.send(length === 0 ? Buffer.alloc(0) : closedWith(raw, file.open({ offset: start, length })));
}

/** The sandbox is not in use any more when the client has left. */
function closedWith(raw: FastifyRequest["raw"], body: Readable): Readable {
  const leave = (): void => void body.destroy();
  raw.socket.once("close", leave);
  // The connection may serve many more requests.
  return body.once("close", () => raw.socket.off("close", leave));
}

interface WrittenFile {
  readonly name: string;
  readonly path: string;
  readonly type: "file";
  readonly metadata?: Readonly<Record<string, string>>;
}

async function receiveFiles(
  files: UserFiles,
  given: string | undefined,
  request: FastifyRequest,
): Promise<WrittenFile[]> {
  const metadata = metadataIn(request.headers);
  const { home } = files.account;
  const written: WrittenFile[] = [];
  const write = async (path: string, content: AsyncIterable<Uint8Array>): Promise<void> => {
    const file = await files.write(path, content, metadata);
    const shown = metadataOf(file);
    written.push({ name: file.name, path, type: "file", ...(shown === undefined ? {} : { metadata: shown }) });
  };
  const body = decoded(request);
  if (request.headers["content-type"]?.split(";")[0]?.trim().toLowerCase() !== FORM) {
    if (given === undefined || given === "") throw new E2bError(400, "The query has no path.");
    await write(absolutePath(home, given), bodyBytes(body));
    return written;
  }
  const seen = new Set<string>();
  for await (const part of fileParts(body, request.headers)) {
    const path = absolutePath(home, pathOf(part, given));
    if (seen.has(path)) throw new E2bError(400, `The upload has ${path} twice.`);
    seen.add(path);
    await write(path, part.content);
  }
  if (written.length === 0) throw new E2bError(400, "The form has no part named file.");
  return written;
}

function pathOf({ filename }: FilePart, given: string | undefined): string {
  const path = given === undefined || given === "" ? filename : given;
  if (path === undefined || path === "") throw new E2bError(400, "Neither the query nor the part names a path.");
  return path;
}

function decoded({ headers, body }: FastifyRequest): Readable {
  const stream = body as Readable | undefined;
  const encoding = headers["content-encoding"] ?? "identity";
  if (stream === undefined || encoding === "identity") return stream as Readable;
  if (encoding !== "gzip") throw new E2bError(400, `The encoding ${encoding.slice(0, 40)} is not supported. Use gzip.`);
  const unpacked = createGunzip();
  stream.on("error", (error) => unpacked.destroy(error));
  stream.on("aborted", () => unpacked.destroy(new Error("The upload was interrupted.")));
  return stream.pipe(unpacked);
}

/** Errors of files with the statuses of envd. */
async function asFileErrors<Result>(work: () => Promise<Result>): Promise<Result> {
  try {
    return await work();
  } catch (thrown) {
    if (thrown instanceof E2bError) throw thrown;
    if (thrown instanceof UnknownUserError) throw new E2bError(401, `${thrown.message} ${thrown.hint ?? ""}`.trim());
    if (thrown instanceof Error && "code" in thrown && String(thrown.code).startsWith("Z_")) {
      throw new E2bError(400, "The body is not valid gzip.");
    }
    const { code, message } = asSandboxerError(thrown);
    if (code === "no_space") throw new E2bError(507, message);
    throw thrown;
  }
}
