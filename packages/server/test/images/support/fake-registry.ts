import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { onTestFinished } from "vitest";
import { digestOf, OCI_MANIFEST, type MadeImage } from "./made-image.ts";

type Answerer = (request: IncomingMessage, response: ServerResponse, bytes: Buffer) => void;

/** A registry in this process that can misbehave. */
export class FakeRegistry {
  readonly host: string;
  /** `GET /v2/…` and the like, in order. */
  readonly requests: string[] = [];
  /** Called first; true: it has answered. */
  intercept: ((request: IncomingMessage, response: ServerResponse) => boolean) | undefined;
  /** Answers requests for blobs; absent: as registries do, with ranges. */
  answerBlob: Answerer = answerRange;
  readonly #manifests = new Map<string, { bytes: Buffer; type: string }>();
  readonly #blobs = new Map<string, Buffer>();

  private constructor(host: string) {
    this.host = host;
  }

  static async start(): Promise<FakeRegistry> {
    const server = createServer((request, response) => registry.#answer(request, response));
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const registry = new FakeRegistry(`127.0.0.1:${(server.address() as AddressInfo).port}`);
    onTestFinished(() => {
      server.closeAllConnections();
      server.close();
    });
    return registry;
  }

  /** Makes an image available; returns its name. */
  push(image: MadeImage, repository = "team/tool", tag = "1"): string {
    this.putManifest(image.manifest, OCI_MANIFEST, repository, tag);
    for (const [digest, bytes] of image.blobs) this.#blobs.set(digest, bytes);
    return `${this.host}/${repository}:${tag}`;
  }

  putManifest(bytes: Buffer, type: string, repository: string, tag: string): void {
    for (const name of [tag, digestOf(bytes)]) this.#manifests.set(`${repository}/${name}`, { bytes, type });
  }

  putBlob(digest: string, bytes: Buffer): void {
    this.#blobs.set(digest, bytes);
  }

  blobRequests(): string[] {
    return this.requests.filter((line) => line.includes("/blobs/"));
  }

  #answer(request: IncomingMessage, response: ServerResponse): void {
    const range = request.headers.range === undefined ? "" : ` ${request.headers.range}`;
    this.requests.push(`${request.method} ${request.url}${range}`);
    if (this.intercept?.(request, response) === true) return;
    const [, repository = "", kind, name = ""] =
      /^\/v2\/(.+)\/(manifests|blobs)\/([^/]+)$/.exec(request.url ?? "") ?? [];
    const manifest = kind === "manifests" ? this.#manifests.get(`${repository}/${name}`) : undefined;
    const blob = kind === "blobs" ? this.#blobs.get(name) : undefined;
    if (manifest !== undefined) {
      const headers = { "content-type": manifest.type, "docker-content-digest": digestOf(manifest.bytes) };
      response.writeHead(200, headers).end(manifest.bytes);
    } else if (blob !== undefined) this.answerBlob(request, response, blob);
    else response.writeHead(404).end(JSON.stringify({ errors: [{ code: "MANIFEST_UNKNOWN", message: "unknown" }] }));
  }
}

export function answerRange(request: IncomingMessage, response: ServerResponse, bytes: Buffer): void {
  const [, start] = /^bytes=(\d+)-$/.exec(request.headers.range ?? "") ?? [];
  if (start === undefined) {
    response.writeHead(200, { "content-length": bytes.length }).end(bytes);
    return;
  }
  const part = bytes.subarray(Number(start));
  const range = `bytes ${start}-${bytes.length - 1}/${bytes.length}`;
  response.writeHead(206, { "content-length": part.length, "content-range": range }).end(part);
}
