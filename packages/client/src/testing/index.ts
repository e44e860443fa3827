/**
 * A real server in this process, for tests of programs that use sandboxes. It uses the fake backend: nothing is isolated
 * and no real program runs, but files, processes, checkpoints, snapshots and handoffs behave as they do on gVisor. It
 * needs no root and only the package `@sandboxer/server`.
 *
 * ```ts
 * import { startTestServer } from "@sandboxer/client/testing";
 *
 * await using server = await startTestServer();
 * await using sandbox = await Sandbox.create({ url: server.url });
 * ```
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { SandboxerError } from "@sandboxer/protocol/errors";
import { Sandboxer } from "../sandboxer.ts";

export interface TestServerOptions {
  /** A folder that several test servers share, so that sandboxes can move between them. Default: its own. */
  readonly store?: string;
  /** Keys that the server accepts. Default: none is needed. */
  readonly apiKeys?: readonly string[];
}

export interface TestServer {
  readonly url: string;
  /** For the `store` of another test server. */
  readonly store: string;
  readonly client: Sandboxer;
  /** Drains all sandboxes and stops, as on SIGTERM. The store stays until `close`. */
  drain(): Promise<void>;
  /** Stops, and removes its folders. */
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** Starts a server on a free port of this machine, with folders of its own. */
export async function startTestServer({ store, apiKeys = [] }: TestServerOptions = {}): Promise<TestServer> {
  const { parseConfig, startServer } = await loadServer();
  const folder = await mkdtemp(join(tmpdir(), "sandboxer-testing-"));
  const config = parseConfig({
    flags: {
      backend: "fake",
      host: "127.0.0.1",
      port: "0",
      store: store ?? join(folder, "store"),
      dataDirectory: join(folder, "data"),
      cacheDirectory: join(folder, "cache"),
      apiKeys: apiKeys.join(","),
      rateLimit: "0",
      drainTimeoutMs: "10s",
      logLevel: "silent",
    },
    env: {},
    homeDirectory: folder,
  });
  const server = await startServer(config, { report: () => {} });
  const close = async (): Promise<void> => {
    // Sandboxes that could not be saved are removed together with their folders.
    await server.drain().catch(() => {});
    await rm(folder, { recursive: true, force: true });
  };
  const [apiKey] = apiKeys;
  return {
    url: server.url,
    store: config.store ?? "",
    client: new Sandboxer({ url: server.url, ...(apiKey === undefined ? {} : { apiKey }) }),
    drain: () => server.drain(),
    close,
    [Symbol.asyncDispose]: close,
  };
}

/** Only tests need the server package, so it is loaded on demand. */
async function loadServer(): Promise<
  Pick<typeof import("@sandboxer/server"), "startServer"> &
    Pick<typeof import("@sandboxer/server/config"), "parseConfig">
> {
  try {
    const { startServer } = await import("@sandboxer/server");
    const { parseConfig } = await import("@sandboxer/server/config");
    return { startServer, parseConfig };
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ERR_MODULE_NOT_FOUND") throw error;
    throw new SandboxerError("not_supported", "A test server needs the package @sandboxer/server.", {
      cause: error,
      hint: "Install it as a development dependency: npm install --save-dev @sandboxer/server",
    });
  }
}
