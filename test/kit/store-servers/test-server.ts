import { existsSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";

/** A real object store that tests start on this machine. */
export interface StoreServer {
  readonly name: string;
  /** The file that {@link prepare} makes; if it exists, the server is ready to use. */
  readonly program: string;
  /** How {@link prepare} gets it, and why not in a simpler way. */
  readonly origin: string;
  /** Its absence is no failure of {@link prepare}. */
  readonly optional?: boolean;
  /** Builds or installs it. Takes minutes, and needs the network. */
  prepare(signal: AbortSignal): Promise<void>;
  /** On the loopback; some can be told another address. */
  start(address?: string): Promise<RunningStoreServer>;
}

export interface RunningStoreServer {
  /** `http://address:port` */
  readonly endpoint: string;
  /** Makes a bucket and gives the address of a store in it, seen through another endpoint if one is given. */
  newStore(endpoint?: string): Promise<string>;
  stop(): Promise<void>;
}

/** Where the servers are kept between runs. */
export const SERVERS_FOLDER = join(
  process.env["XDG_CACHE_HOME"] ?? join(homedir(), ".cache"),
  "sandboxer",
  "test-servers",
);

/** Undefined if it can be started. */
export function whyMissing(server: StoreServer): string | undefined {
  if (existsSync(server.program)) return undefined;
  return `${server.name} is not here. Run: node test/kit/store-servers/prepare.ts`;
}
