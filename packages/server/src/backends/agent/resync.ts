import { Buffer } from "node:buffer";
import { randomBytes } from "node:crypto";
import { PassThrough, type Readable, type Writable } from "node:stream";
import { SandboxerError } from "@sandboxer/protocol";
import { unlessAborted } from "../../support/unless-aborted.ts";
import { encodeFrame } from "./frame-decoder.ts";
import { Reply, Request } from "./frame-types.ts";

const TOKEN_BYTES = 32;

/**
 * Known to the hosts of one agent and to nobody inside its sandbox: the agent gets it in a frame, not in its
 * environment.
 */
export function newResyncToken(): string {
  return randomBytes(TOKEN_BYTES / 2).toString("hex");
}

/**
 * Makes an agent that another host has left follow this one, even if frames were cut off in either direction: both
 * sides drop everything before their frame with the token. Returns the agent's output after that.
 */
export async function resync(
  input: Writable,
  output: Readable,
  token: string,
  options: { readonly timeoutMs: number; readonly signal?: AbortSignal | undefined },
): Promise<Readable> {
  const following = new PassThrough();
  const found = Promise.withResolvers<void>();
  const giveUp = (): void => found.reject(notFollowing(`it did not answer within ${options.timeoutMs} ms`));
  const onGone = (): void => {
    following.end();
    found.reject(notFollowing("it has ended"));
  };
  const timer = setTimeout(giveUp, options.timeoutMs);
  const marker = encodeFrame(Reply.resynced, 0, Buffer.from(token));
  let before: Buffer | undefined = Buffer.alloc(0);
  output.on("data", (chunk: Buffer) => {
    if (before === undefined) {
      if (!following.write(chunk)) output.pause();
      return;
    }
    const seen = Buffer.concat([before, chunk]);
    const at = seen.indexOf(marker);
    // The marker may arrive in pieces.
    before = at >= 0 ? undefined : seen.subarray(Math.max(0, seen.length - marker.length + 1));
    if (at < 0) return;
    following.write(seen.subarray(at + marker.length));
    found.resolve();
  });
  following.on("drain", () => output.resume());
  following.on("close", () => output.destroy());
  for (const event of ["end", "error", "close"]) output.on(event, onGone);
  input.write(encodeFrame(Request.resync, 0, Buffer.from(token)));
  try {
    await unlessAborted(found.promise, options.signal);
    return following;
  } finally {
    clearTimeout(timer);
  }
}

function notFollowing(why: string): SandboxerError {
  return new SandboxerError("sandbox_failed", `The server could not connect to the agent in the sandbox: ${why}.`);
}
