import { buffer } from "node:stream/consumers";
import type { FileEntryRecord } from "@sandboxer/protocol";
import { extract, type Header, pack } from "tar-stream";
import type { TestServer } from "../../../../../../test/kit/server/test-server.ts";
import { type Answer, type ErrorAnswer, HttpClient } from "../support.ts";

export interface TarEntry {
  readonly name: string;
  readonly type?: Header["type"];
  readonly content?: string | Buffer;
  readonly mode?: number;
  readonly mtime?: Date;
  readonly linkname?: string;
}

type Body = string | Uint8Array | ReadableStream;

export function tarOf(entries: readonly TarEntry[]): Promise<Buffer> {
  const archive = pack();
  for (const { content = "", type = "file", ...header } of entries) {
    if (type === "file") archive.entry({ ...header, type }, content);
    else archive.entry({ ...header, type });
  }
  archive.finalize();
  return buffer(archive);
}

export async function readTar(bytes: AsyncIterable<Uint8Array>): Promise<(TarEntry & { content: Buffer })[]> {
  const archive = extract();
  const entries: (TarEntry & { content: Buffer })[] = [];
  const reading = (async () => {
    for await (const entry of archive) {
      const content = await buffer(entry);
      const { name, type, mode, mtime, linkname } = entry.header;
      const link = typeof linkname === "string" ? { linkname } : {};
      entries.push({ name, type, content, mode, mtime, ...link });
    }
  })();
  for await (const chunk of bytes) {
    if (!archive.write(chunk)) await new Promise<void>((resolve) => archive.once("drain", () => resolve()));
  }
  archive.end(undefined);
  await reading;
  return entries;
}

/** The files of one sandbox over HTTP. */
export class FilesClient {
  readonly http: HttpClient;
  readonly url: string;
  readonly id: string;

  constructor(server: Pick<TestServer, "httpUrl">, id: string) {
    this.http = new HttpClient(server);
    this.url = `${server.httpUrl}/v1/sandboxes/${id}`;
    this.id = id;
  }

  static async create(server: Pick<TestServer, "httpUrl">, body: object = {}): Promise<FilesClient> {
    return new FilesClient(server, (await new HttpClient(server).create(body)).id);
  }

  call<Body = ErrorAnswer>(method: string, path: string, body?: unknown): Promise<Answer<Body>> {
    return this.http.call<Body>(method, `/v1/sandboxes/${this.id}${path}`, body);
  }

  read(path: string, query = ""): Promise<Response> {
    return fetch(`${this.url}/files?path=${encodeURIComponent(path)}${query}`);
  }

  write(path: string, content: Body, query = ""): Promise<Response> {
    return fetch(`${this.url}/files?path=${encodeURIComponent(path)}${query}`, {
      method: "PUT",
      headers: { "content-type": "application/octet-stream" },
      body: content as string,
      ...({ duplex: "half" } as object),
    });
  }

  async stat(path: string): Promise<FileEntryRecord> {
    return (await this.call<FileEntryRecord>("GET", `/files/stat?path=${encodeURIComponent(path)}`)).body;
  }

  async names(path: string): Promise<string[]> {
    const { body } = await this.call<{ items: FileEntryRecord[] }>(
      "GET",
      `/files/list?path=${encodeURIComponent(path)}`,
    );
    return body.items.map(({ name }) => name);
  }

  download(path: string, query = ""): Promise<Response> {
    return fetch(`${this.url}/tree?path=${encodeURIComponent(path)}${query}`);
  }

  async upload(path: string, tar: Body): Promise<{ status: number; body: ErrorAnswer & { files: number } }> {
    const response = await fetch(`${this.url}/tree?path=${encodeURIComponent(path)}`, {
      method: "PUT",
      headers: { "content-type": "application/x-tar" },
      body: tar as string,
      ...({ duplex: "half" } as object),
    });
    return { status: response.status, body: (await response.json()) as ErrorAnswer & { files: number } };
  }
}
