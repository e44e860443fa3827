import { readFile } from "node:fs/promises";
import { resolve } from "node:path";
import { DEFAULT_URL, Transport } from "@sandboxer/client/transport";
import { SandboxerError } from "@sandboxer/protocol/errors";
import { checkedKey } from "../contexts/checked-key.ts";
import { readContexts } from "../contexts/config-file.ts";
import { resolveKey } from "../contexts/key.ts";
import type { Io } from "../io.ts";

export { DEFAULT_URL };

/** Retries are short: a person waits. */
const RETRY = { attempts: 3, firstDelayMs: 100 } as const;

export interface ConnectionFlags {
  readonly url?: string | undefined;
  readonly context?: string | undefined;
  readonly keyFile?: string | undefined;
  readonly encryptionKeyFile?: string | undefined;
}

/**
 * Finds the server: flags, then the environment, then the current context, then this machine. A context's key is sent
 * only to the context's server.
 */
export async function connect(io: Io, flags: ConnectionFlags): Promise<Transport> {
  if (flags.url !== undefined && flags.context !== undefined) {
    throw new SandboxerError("bad_request", "Give --url or --context, not both.");
  }
  const fromEnvironment = flags.context === undefined ? io.env["SANDBOXER_URL"] : undefined;
  const url = flags.url ?? (fromEnvironment || undefined);
  const givenKey = await keyOf(io, flags);
  const encryptionKey = await encryptionKeyOf(io, flags);
  const transport = (address: string, apiKey: string | undefined): Transport =>
    new Transport({
      url: address,
      retry: RETRY,
      ...(apiKey === undefined ? {} : { apiKey }),
      ...(encryptionKey === undefined ? {} : { encryptionKey }),
    });
  if (url !== undefined) return transport(checkedUrl(url), givenKey);
  const { contexts, current } = await readContexts(io);
  const name = flags.context ?? (io.env["SANDBOXER_CONTEXT"] || current);
  if (name === undefined) return transport(DEFAULT_URL, givenKey);
  const context = contexts.get(name);
  if (context === undefined) {
    throw new SandboxerError("bad_request", `There is no context "${name}".`, {
      hint: "List contexts with `sandboxer context list`; create one with `sandboxer context add`.",
    });
  }
  return transport(checkedUrl(context.url), givenKey ?? (await resolveKey(io, name, context)));
}

export function checkedUrl(text: string): string {
  const url = URL.parse(text);
  if (url !== null && /^https?:$/.test(url.protocol) && url.username === "" && url.search === "") return text;
  throw new SandboxerError("bad_request", `"${text}" is not a server URL.`, {
    hint: `Write it like ${DEFAULT_URL}.`,
  });
}

async function keyOf(io: Io, { keyFile }: ConnectionFlags): Promise<string | undefined> {
  if (keyFile === undefined) return io.env["SANDBOXER_API_KEY"] || undefined;
  const { path, text } = await readKeyFile(io, keyFile, "--api-key-file");
  return checkedKey(text, `The file ${path}`);
}

async function encryptionKeyOf(io: Io, { encryptionKeyFile }: ConnectionFlags): Promise<string | undefined> {
  if (encryptionKeyFile === undefined) return io.env["SANDBOXER_ENCRYPTION_KEY"]?.trim() || undefined;
  return (await readKeyFile(io, encryptionKeyFile, "--encryption-key-file")).text.trim();
}

async function readKeyFile(io: Io, given: string, flag: string): Promise<{ path: string; text: string }> {
  const path = resolve(io.workingDirectory, given);
  const text = await readFile(path, "utf8").catch((error: unknown) => {
    throw new SandboxerError("bad_request", `The key file ${path} cannot be read.`, {
      cause: error,
      hint: error instanceof Error ? error.message : `Check ${flag}.`,
    });
  });
  return { path, text };
}
