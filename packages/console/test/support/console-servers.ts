import { join } from "node:path";
import { inject } from "vitest";
import { Sandboxer } from "@sandboxer/client";
import { KeyFile } from "@sandboxer/server/keys";
import type { ImageLibrary } from "../../../server/src/images/image-library.ts";
import { loadProfiles } from "../../../server/src/profiles/load-profiles.ts";
import { ServerProcess } from "../../../../test/kit/server/server-process.ts";
import { temporaryFolder } from "../../../../test/kit/temporary-folder.ts";
import { startTestServer, type TestServer, type TestServerOptions } from "../../../../test/kit/server/test-server.ts";
import { testImages } from "./test-images.ts";

export type Backend = "fake" | "gvisor";
export type KeyScope = "read" | "use" | "admin";

/** One server that serves the console. */
export interface ConsoleServer {
  readonly url: string;
  /** Its SDK, with the admin key if keys are needed. */
  readonly client: Sandboxer;
  /** For the fake backend: the server's parts, in this process. */
  readonly parts: TestServer | undefined;
  /** For gVisor: the server's process. */
  readonly process: ServerProcess | undefined;
}

/** Keys of all servers of a test, by scope. */
export interface ConsoleKeys {
  readonly file: KeyFile;
  readonly texts: Readonly<Record<KeyScope, string>>;
}

export interface ServersOptions {
  readonly backend: Backend;
  readonly instances: number;
  readonly keys: boolean;
  readonly leaseTtlMs?: number | undefined;
  /** False: the fake backend's servers have no store. */
  readonly store?: boolean | undefined;
  /** For the fake backend; absent: its servers have an empty library. */
  readonly images?: ImageLibrary | undefined;
  /** For the fake backend: real interpreters for cells. */
  readonly wrapBackend?: TestServerOptions["wrapBackend"];
  /** For the fake backend; absent: its servers use HTTP. */
  readonly tls?: TestServerOptions["tls"];
}

/** Servers on one store, which know the same keys. */
export async function startServers(
  options: ServersOptions,
): Promise<{ readonly servers: readonly ConsoleServer[]; readonly keys: ConsoleKeys | undefined }> {
  const store = await temporaryFolder();
  const dataHome = await temporaryFolder();
  // Where `sandboxer serve` looks for it.
  const keys = options.keys ? await makeKeys(join(dataHome, "sandboxer")) : undefined;
  const start = async (): Promise<ConsoleServer> => {
    const started = options.backend === "fake" ? await fake(store, keys, options) : await gvisor(store, dataHome);
    const client = new Sandboxer({ url: started.url, ...(keys === undefined ? {} : { apiKey: keys.texts.admin }) });
    return { ...started, client };
  };
  const servers = await Promise.all(Array.from({ length: options.instances }, start));
  return { servers, keys };
}

async function fake(
  store: string,
  keys: ConsoleKeys | undefined,
  { leaseTtlMs, store: stored = true, images, wrapBackend, tls }: ServersOptions,
): Promise<Omit<ConsoleServer, "client">> {
  const parts = await startTestServer({
    store: stored ? store : null,
    consoleFolder: inject("consoleBrowser").folder,
    profiles: await loadProfiles({ directories: [] }),
    images: images ?? (await testImages()).library,
    ...(leaseTtlMs === undefined ? {} : { leaseTtlMs }),
    ...(wrapBackend === undefined ? {} : { wrapBackend }),
    ...(tls === undefined ? {} : { tls }),
    ...(keys === undefined ? {} : { access: { keyFile: keys.file.path } }),
  });
  return { url: parts.httpUrl, parts, process: undefined };
}

async function gvisor(store: string, dataHome: string): Promise<Omit<ConsoleServer, "client">> {
  const process = await ServerProcess.start({ store, dataHome });
  return { url: process.url.replace(/^ws/, "http"), parts: undefined, process };
}

async function makeKeys(dataDirectory: string): Promise<ConsoleKeys> {
  const file = new KeyFile(dataDirectory);
  const make = async (scope: KeyScope): Promise<string> => (await file.create({ name: scope, scope })).text;
  return { file, texts: { read: await make("read"), use: await make("use"), admin: await make("admin") } };
}
