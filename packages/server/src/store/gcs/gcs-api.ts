import { randomUUID } from "node:crypto";
import { LARGEST_CELL_BYTES } from "../cell-limit.ts";
import type {
  BucketApi,
  ByteRange,
  LargeUpload,
  ListPage,
  ListRequest,
  OpenedBlob,
  PutOptions,
  RequestOptions,
  StoredCell,
  StoredHead,
  UploadOptions,
} from "../bucket/bucket-api.ts";
import { BucketError, COMMON_REMEDIES, type Remedies, unlessAbsent } from "../bucket/bucket-error.ts";
import { rangeHeader, receive, receiveNothing } from "../bucket/receive.ts";
import { CELL_LIMIT_MS, PART_LIMIT_MS, SMALL_LIMIT_MS } from "../bucket/time-limit.ts";
import { type GcsHttp, ignoreBody } from "./gcs-http.ts";
import { GcsUpload } from "./gcs-upload.ts";

const REMEDIES: Remedies = {
  ...COMMON_REMEDIES,
  credentials:
    "Set GOOGLE_APPLICATION_CREDENTIALS to a key file, or run as a service account, or run: gcloud auth application-default login",
  rights: "Grant roles/storage.objectUser on the bucket (docs/reference/stores.md lists the permissions).",
  region: "Check the endpoint in the store's address.",
};

const RANGE_NOT_SATISFIABLE = 416;
const JSON_TYPE = { "content-type": "application/json" };

export interface GcsApiOptions {
  readonly address: string;
  readonly http: GcsHttp;
  /** Without a `/` at its end. */
  readonly endpoint: string;
  readonly bucket: string;
}

/** The requests to Google's JSON API. A version is an object's generation. */
export class GcsApi implements BucketApi {
  readonly address: string;
  readonly remedies = REMEDIES;
  readonly #http: GcsHttp;
  readonly #objects: string;
  readonly #uploads: string;

  constructor({ address, http, endpoint, bucket }: GcsApiOptions) {
    this.address = address;
    this.#http = http;
    this.#objects = `${endpoint}/storage/v1/b/${encodeURIComponent(bucket)}/o`;
    this.#uploads = `${endpoint}/upload/storage/v1/b/${encodeURIComponent(bucket)}/o`;
  }

  async getCell(name: string): Promise<StoredCell | undefined> {
    const request = { method: "GET", url: `${this.#objectUrl(name)}?alt=media`, limitMs: CELL_LIMIT_MS } as const;
    return await unlessAbsent(() =>
      this.#http.send(request, async (answer) => {
        const version = generation(answer.headers.get("x-goog-generation"));
        if (Number(answer.headers.get("content-length")) > LARGEST_CELL_BYTES) {
          await answer.body?.cancel();
          return { body: undefined, version };
        }
        return { body: new Uint8Array(await answer.arrayBuffer()), version };
      }),
    );
  }

  async putCell(name: string, expected: string | undefined, body: Uint8Array): Promise<string> {
    // Zero stands for absence here.
    if (expected !== undefined && !/^[1-9]\d*$/.test(expected)) {
      throw new BucketError({ kind: "precondition" }, `"${expected}" is not a version.`);
    }
    const query = { uploadType: "media", name, ifGenerationMatch: expected ?? "0", fields: "generation" };
    const url = `${this.#uploads}?${new URLSearchParams(query).toString()}`;
    return await this.#http.send(
      { method: "POST", url, headers: JSON_TYPE, body, limitMs: CELL_LIMIT_MS },
      async (answer) => generation(((await answer.json()) as { generation?: string }).generation),
    );
  }

  async head(name: string): Promise<StoredHead | undefined> {
    const url = `${this.#objectUrl(name)}?fields=size,metadata`;
    return await unlessAbsent(() =>
      this.#http.send({ method: "GET", url, limitMs: SMALL_LIMIT_MS }, async (answer) => {
        const { size = "0", metadata } = (await answer.json()) as { size?: string; metadata?: { writer?: string } };
        return { sizeBytes: Number(size), writer: metadata?.writer };
      }),
    );
  }

  async open(name: string, range: ByteRange, { signal }: RequestOptions): Promise<OpenedBlob | undefined> {
    const url = `${this.#objectUrl(name)}?alt=media${range.version === undefined ? "" : `&generation=${range.version}`}`;
    const header = rangeHeader(range);
    const headers = header === undefined ? {} : { range: header };
    const stop = new AbortController();
    const limits = { limitMs: SMALL_LIMIT_MS, signal, stop, accept: [RANGE_NOT_SATISFIABLE] };
    return await unlessAbsent(() =>
      this.#http.send({ method: "GET", url, headers, ...limits }, async (answer) => {
        const version = answer.headers.get("x-goog-generation") ?? undefined;
        if (answer.status === RANGE_NOT_SATISFIABLE || answer.body === null) {
          await ignoreBody(answer);
          return { chunks: receiveNothing(), version };
        }
        const length = answer.headers.get("content-length");
        const expectedBytes = length === null ? undefined : Number(length);
        return { chunks: receive(answer.body, expectedBytes, (reason) => stop.abort(reason)), version };
      }),
    );
  }

  /** One request with two parts, because the writer's mark must be stored together with the bytes. */
  async put(name: string, body: Uint8Array, { writer, ifAbsent, signal }: PutOptions): Promise<void> {
    const boundary = randomUUID();
    const head = JSON.stringify({ name, metadata: { writer } });
    const whole = Buffer.concat([
      Buffer.from(`--${boundary}\r\nContent-Type: application/json\r\n\r\n${head}\r\n`),
      Buffer.from(`--${boundary}\r\nContent-Type: application/octet-stream\r\n\r\n`),
      body,
      Buffer.from(`\r\n--${boundary}--\r\n`),
    ]);
    const query = { uploadType: "multipart", name, ...(ifAbsent ? { ifGenerationMatch: "0" } : {}) };
    const url = `${this.#uploads}?${new URLSearchParams(query).toString()}`;
    const headers = { "content-type": `multipart/related; boundary=${boundary}` };
    await this.#http.send({ method: "POST", url, headers, body: whole, limitMs: PART_LIMIT_MS, signal }, ignoreBody);
  }

  async beginUpload(name: string, options: UploadOptions): Promise<LargeUpload> {
    const query = { uploadType: "resumable", name, ...(options.ifAbsent ? { ifGenerationMatch: "0" } : {}) };
    const url = `${this.#uploads}?${new URLSearchParams(query).toString()}`;
    const body = Buffer.from(JSON.stringify({ name, metadata: { writer: options.writer } }));
    const { signal } = options;
    const session = await this.#http.send(
      { method: "POST", url, headers: JSON_TYPE, body, limitMs: SMALL_LIMIT_MS, signal },
      async (answer) => {
        await ignoreBody(answer);
        return answer.headers.get("location");
      },
    );
    if (session === null) throw new BucketError({ kind: "unclear", reached: true }, "no upload was named.");
    return new GcsUpload(this.#http, session, options);
  }

  async listPage({ prefix, byFolder, pageToken }: ListRequest): Promise<ListPage> {
    const query = new URLSearchParams({
      prefix,
      fields: "items(name,size,generation),prefixes,nextPageToken",
      ...(byFolder ? { delimiter: "/" } : {}),
      ...(pageToken === undefined ? {} : { pageToken }),
    });
    const url = `${this.#objects}?${query.toString()}`;
    return await this.#http.send({ method: "GET", url, limitMs: SMALL_LIMIT_MS }, async (answer) => {
      const page = (await answer.json()) as GcsPage;
      return {
        objects: (page.items ?? []).map(({ name, size, generation: mark }) => ({
          name,
          sizeBytes: Number(size),
          mark,
        })),
        folders: page.prefixes ?? [],
        nextPageToken: page.nextPageToken,
      };
    });
  }

  async delete(name: string): Promise<void> {
    const request = { method: "DELETE", url: this.#objectUrl(name), limitMs: SMALL_LIMIT_MS } as const;
    await unlessAbsent(() => this.#http.send(request, ignoreBody));
  }

  #objectUrl(name: string): string {
    return `${this.#objects}/${encodeURIComponent(name)}`;
  }
}

interface GcsPage {
  readonly items?: readonly { readonly name: string; readonly size: string; readonly generation: string }[];
  readonly prefixes?: readonly string[];
  readonly nextPageToken?: string;
}

/** Without a generation the write may exist, but cannot be named. */
function generation(found: string | null | undefined): string {
  if (found !== null && found !== undefined && /^[1-9]\d*$/.test(found)) return found;
  throw new BucketError({ kind: "unclear", reached: true }, "the store gave no generation.");
}
