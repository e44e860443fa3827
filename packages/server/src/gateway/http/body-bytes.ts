import { Readable } from "node:stream";
import { SandboxerError } from "@sandboxer/protocol";

/** The bytes of a body as a stream; empty without a body. Other content types are refused. */
export async function* bodyBytes(stream: Readable | undefined | null): AsyncGenerator<Uint8Array> {
  if (stream === undefined || stream === null) return;
  if (!(stream instanceof Readable)) {
    throw new SandboxerError("bad_request", "The body must be bytes.", {
      hint: "Send it with Content-Type: application/octet-stream (application/x-tar for a tree).",
    });
  }
  // A handler that stops reading still has to respond on the connection.
  yield* stream.iterator({ destroyOnReturn: false }) as AsyncIterable<Uint8Array>;
}
