import { Readable } from "node:stream";
import type { IncomingMessage } from "node:http";

const MAX_BYTES = 256 * 1024;

/**
 * The body of a call that is about to be relayed, if it is short: it can be sent again when the sandbox has moved
 * meanwhile. Undefined: it is a stream, which is passed on unbuffered.
 */
export async function shortBody(request: IncomingMessage): Promise<Buffer | undefined> {
  if (!isShort(request)) return undefined;
  const chunks: Buffer[] = [];
  for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk);
  return Buffer.concat(chunks);
}

export function isShort({ headers }: IncomingMessage): boolean {
  return headers["transfer-encoding"] === undefined && Number(headers["content-length"] ?? 0) <= MAX_BYTES;
}

/** For Fastify, which reads the body of a call that is handled here after all. */
export function replayed(body: Buffer): Readable {
  return Object.assign(Readable.from(body.length === 0 ? [] : [body]), { receivedEncodedLength: body.length });
}
