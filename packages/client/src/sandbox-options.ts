import type { LongCallOptions, SandboxHandleOptions } from "./long-call.ts";
import type { RestoreSettings, SandboxSettings } from "./records.ts";
import { Sandboxer } from "./sandboxer.ts";
import type { CallOptions } from "./wire/call-types.ts";
import type { ConnectionOptions } from "./wire/transport.ts";

/** The connection: an existing client, or the options to create one. */
export type ClientOptions = ConnectionOptions | { readonly client: Sandboxer };

export type CreateOptions = SandboxSettings & LongCallOptions & SandboxHandleOptions;
export type RestoreOptions = RestoreSettings & LongCallOptions & SandboxHandleOptions;
export type AttachOptions = CallOptions & SandboxHandleOptions;

/** The client, and the remaining options. */
export function clientOf<Options extends ClientOptions>(
  options: Options,
): { client: Sandboxer; settings: Omit<Options, keyof ConnectionOptions | "client"> } {
  const {
    client,
    url,
    apiKey,
    encryptionKey,
    fetch,
    signal: _,
    retry,
    relay,
    ...settings
  } = options as ConnectionOptions & {
    readonly client?: Sandboxer;
  };
  const connection = Object.fromEntries(
    Object.entries({ url, apiKey, encryptionKey, fetch, retry, relay }).filter(([, value]) => value !== undefined),
  );
  return { client: client ?? new Sandboxer(connection), settings: settings as never };
}
