import type { IncomingHttpHeaders } from "node:http";
import type { Readable } from "node:stream";
import { Busboy, type BusboyFileStream, type BusboyInstance } from "@fastify/busboy";
import { E2bError } from "../errors.ts";

/** Each part is a file, and its answer is kept until the end. */
const MAX_PARTS = 1000;
const MAX_HEADER_BYTES = 16 * 1024;
const MAX_HEADERS = 32;

export interface FilePart {
  /** With its folders; undefined: the part has none. */
  readonly filename: string | undefined;
  readonly content: AsyncIterable<Uint8Array>;
}

/**
 * The parts named `file` of a form, one after the other, without keeping any of them. The next part comes when this one
 * was read. Bodies that are no form, and forms with too many parts, are refused.
 */
export async function* fileParts(body: Readable, headers: IncomingHttpHeaders): AsyncGenerator<FilePart> {
  const parts = new Parts();
  const parser = parserFor(headers);
  parser.on("file", (field: string, content: BusboyFileStream, filename: string | undefined) => {
    content.on("error", () => {});
    if (field === "file") parts.add({ filename: filename === "" ? undefined : filename, content });
    else content.resume();
  });
  const fail = (why: string) => (): void => parts.fail(new E2bError(400, why));
  parser.on("filesLimit", fail(`An upload has at most ${MAX_PARTS} files.`));
  parser.on("partsLimit", fail(`An upload has at most ${MAX_PARTS} files.`));
  parser.on("error", fail("The form is malformed or incomplete."));
  parser.on("finish", () => parts.finish());
  body.on("error", fail("The upload was interrupted."));
  body.on("aborted", fail("The upload was interrupted."));
  body.pipe(parser);
  try {
    yield* parts.read();
  } finally {
    // The rest is dropped once the request is answered.
    body.unpipe(parser);
    parser.on("error", () => {});
    parser.destroy();
  }
}

function parserFor(headers: IncomingHttpHeaders): BusboyInstance {
  try {
    return new Busboy({
      headers: { ...headers, "content-type": headers["content-type"] ?? "" },
      preservePath: true,
      // Also parts without a file name are files.
      isPartAFile: () => true,
      limits: { files: MAX_PARTS, parts: MAX_PARTS, headerPairs: MAX_HEADERS, headerSize: MAX_HEADER_BYTES },
    });
  } catch {
    throw new E2bError(400, "The form has no boundary.");
  }
}

/** Parts between the parser's events and their reader. */
class Parts {
  readonly #waiting: { readonly filename: string | undefined; readonly content: BusboyFileStream }[] = [];
  #reading: BusboyFileStream | undefined;
  #failure: Error | undefined;
  #finished = false;
  #wake = Promise.withResolvers<void>();

  add(part: { filename: string | undefined; content: BusboyFileStream }): void {
    this.#waiting.push(part);
    this.#notify();
  }

  fail(error: Error): void {
    this.#failure ??= error;
    // A reader of the present part would wait forever.
    this.#reading?.destroy(this.#failure);
    for (const { content } of this.#waiting) content.resume();
    this.#notify();
  }

  finish(): void {
    this.#finished = true;
    this.#notify();
  }

  async *read(): AsyncGenerator<FilePart> {
    for (;;) {
      if (this.#failure !== undefined) throw this.#failure;
      const part = this.#waiting.shift();
      if (part !== undefined) {
        this.#reading = part.content;
        yield part;
        this.#reading = undefined;
        part.content.resume();
      } else if (this.#finished) return;
      else await this.#wake.promise;
    }
  }

  #notify(): void {
    this.#wake.resolve();
    this.#wake = Promise.withResolvers();
  }
}
