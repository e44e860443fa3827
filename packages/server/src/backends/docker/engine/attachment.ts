import type { Buffer } from "node:buffer";
import type { Duplex, Readable, Writable } from "node:stream";
import { Demultiplexer } from "./demultiplex.ts";

/** The standard streams of a container's PID 1. Closing it does not affect the container and its stdin. */
export interface Attachment {
  readonly input: Writable;
  readonly output: Readable;
  /** The end of what PID 1 wrote to stderr. */
  lastWords(): string;
  close(): void;
}

export function attachmentOf({ socket, head }: { readonly socket: Duplex; readonly head: Buffer }): Attachment {
  const demultiplexer = new Demultiplexer();
  const { stdout } = demultiplexer;
  demultiplexer.on("error", () => socket.destroy());
  socket.on("error", (error) => demultiplexer.destroy(error));
  socket.on("close", () => demultiplexer.end());
  stdout.on("close", () => socket.destroy());
  if (head.length > 0) demultiplexer.write(head);
  socket.pipe(demultiplexer);
  return { input: socket, output: stdout, lastWords: () => demultiplexer.lastWords, close: () => socket.destroy() };
}
