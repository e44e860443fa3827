import { SandboxerError } from "@sandboxer/protocol";

const MAX_BYTES = 1024 * 1024;
const LIMIT_MS = 10_000;

export interface ReadTextOptions {
  readonly maxBytes?: number;
  /** Time limit for the whole text. */
  readonly limitMs?: number;
}

/** Reads a short response of another server, which may be a stranger: `too_large` or `timeout` if it is not short. */
export async function readText(
  body: AsyncIterable<Uint8Array>,
  { maxBytes = MAX_BYTES, limitMs = LIMIT_MS }: ReadTextOptions = {},
): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  const reading = (async (): Promise<void> => {
    for await (const chunk of body) {
      bytes += chunk.length;
      if (bytes > maxBytes) throw new SandboxerError("too_large", "The response of another server is too large.");
      chunks.push(chunk);
    }
  })();
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(
    () => late.reject(new SandboxerError("timeout", "The response of another server does not end.")),
    limitMs,
  );
  try {
    await Promise.race([reading, late.promise]);
  } finally {
    clearTimeout(timer);
    reading.catch(() => {});
  }
  return Buffer.concat(chunks).toString("utf8");
}
