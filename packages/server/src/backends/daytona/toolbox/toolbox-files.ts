import { z } from "zod";
import { SandboxerError, type ErrorCode } from "@sandboxer/protocol";
import type { HttpJson, HttpRequest } from "../../../support/http-json.ts";
import { vendorSaid, vendorStatus } from "../daytona-errors.ts";
import { fileInfoSchema, type ToolboxFile } from "./schemas.ts";

/** The daemon passes on operating system errors, mostly as 400. */
const REASONS: readonly (readonly [text: RegExp, code: ErrorCode, says: string])[] = [
  [/no such file|not found/i, "file_not_found", "does not exist"],
  [/permission denied|not permitted|read-only/i, "permission_denied", "cannot be accessed"],
  [/no space left|quota/i, "no_space", "does not fit: the volume is full"],
  [/exists/i, "bad_request", "already exists"],
  [/not a directory/i, "bad_request", "is not a folder"],
  [/is a directory|must be a file|without recursive/i, "bad_request", "is a folder"],
];
const BY_STATUS: Readonly<Record<number, ErrorCode>> = { 403: "permission_denied", 404: "file_not_found" };

/** Files through the toolbox. Links are followed by all of it. https://www.daytona.io/docs/en/file-system-operations/ */
export class ToolboxFiles {
  readonly #http: HttpJson;

  constructor(http: HttpJson) {
    this.#http = http;
  }

  info(path: string): Promise<ToolboxFile> {
    return this.#try(path, () =>
      this.#http.json(fileInfoSchema, { method: "GET", path: "/files/info", query: { path } }),
    );
  }

  async requireFolder(path: string): Promise<void> {
    const { isDir } = await this.info(path);
    if (!isDir) throw new SandboxerError("bad_request", `${path} is not a folder.`);
  }

  list(path: string): Promise<readonly ToolboxFile[]> {
    return this.#try(path, () =>
      this.#http.json(z.array(fileInfoSchema), { method: "GET", path: "/files", query: { path } }),
    );
  }

  /** A range by the standard header, which the daemon's file server supports. */
  download(path: string, range?: { readonly offset: number; readonly length: number | undefined }): Promise<Response> {
    const last = range?.length === undefined ? "" : String(range.offset + range.length - 1);
    const headers = range === undefined ? {} : { range: `bytes=${range.offset}-${last}` };
    const request: HttpRequest = { method: "GET", path: "/files/download", query: { path }, headers };
    return this.#try(path, () => this.#http.open(request));
  }

  /** The daemon creates missing parents. */
  upload(path: string, bytes: Uint8Array | AsyncIterable<Uint8Array>): Promise<void> {
    return this.#send(path, { method: "POST", path: "/files/upload-v2", query: { path }, bytes, timeoutMs: 0 });
  }

  /** Creates parents too, and an existing folder is not an error. */
  makeFolder(path: string, mode = "0755"): Promise<void> {
    return this.#send(path, { method: "POST", path: "/files/folder", query: { path, mode }, idempotent: true });
  }

  remove(path: string, recursive: boolean): Promise<void> {
    return this.#send(path, { method: "DELETE", path: "/files", query: { path, recursive }, idempotent: false });
  }

  move(source: string, destination: string): Promise<void> {
    return this.#send(source, { method: "POST", path: "/files/move", query: { source, destination } });
  }

  setMode(path: string, mode: number): Promise<void> {
    const query = { path, mode: mode.toString(8).padStart(4, "0") };
    return this.#send(path, { method: "POST", path: "/files/permissions", query, idempotent: true });
  }

  #send(path: string, request: HttpRequest): Promise<void> {
    return this.#try(path, () => this.#http.send(request));
  }

  async #try<Result>(path: string, call: () => Promise<Result>): Promise<Result> {
    try {
      return await call();
    } catch (thrown) {
      throw fileError(path, thrown);
    }
  }
}

function fileError(path: string, thrown: unknown): unknown {
  const status = vendorStatus(thrown);
  if (status === undefined || status === 401 || status === 429 || status >= 500) return thrown;
  const said = vendorSaid(thrown);
  const reason = REASONS.find(([text]) => text.test(said));
  const details = { vendor_status: status };
  if (reason !== undefined) return new SandboxerError(reason[1], `${path} ${reason[2]}.`, { details });
  return new SandboxerError(BY_STATUS[status] ?? "bad_request", `${path}: ${said || `status ${status}`}`, { details });
}
