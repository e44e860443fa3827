import { Readable } from "node:stream";
import { SandboxerError } from "@sandboxer/protocol";

/** The bytes of a body as they come; none without a body. Another kind of content is refused. */
export async function* bodyBytes(stream: Readable | undefined | null): AsyncGenerator<Uint8Array> {
  if (stream === undefined || stream === null) return;
  if (!(stream instanceof Readable)) {
    throw new SandboxerError("bad_request", "The body must be bytes.", {
      hint: "Send it with Content-Type: application/octet-stream (application/x-tar for a tree).",
    });
  }
  // Whoever stops reading has an answer to give, for which the connection is needed.
  yield* stream.iterator({ destroyOnReturn: false }) as AsyncIterable<Uint8Array>;
}
