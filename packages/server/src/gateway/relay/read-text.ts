import type { Readable } from "node:stream";
import { SandboxerError } from "@sandboxer/protocol";

const MAX_BYTES = 1024 * 1024;

/** All of a short answer of another server. */
export async function readText(stream: Readable): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of stream as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > MAX_BYTES) throw new SandboxerError("too_large", "The answer of another server is too large.");
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}
