import { Writable } from "node:stream";

/** A stream whose writes complete with their promises. Errors reach the writer. */
export function promisedWritable(write: (chunk: Buffer) => Promise<void>, end: () => Promise<void>): Writable {
  const stream = new Writable({
    write: (chunk: Buffer, _encoding, done) => void settle(write(chunk), done),
    final: (done) => void settle(end(), done),
  });
  return stream.on("error", () => {});
}

async function settle(work: Promise<void>, done: (error?: Error | null) => void): Promise<void> {
  try {
    await work;
  } catch (thrown) {
    return done(thrown instanceof Error ? thrown : new Error(String(thrown)));
  }
  done();
}
