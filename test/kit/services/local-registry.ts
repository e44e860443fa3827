import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { basename, dirname, join } from "node:path";
import { pipeline } from "node:stream/promises";

const ROOT = join(import.meta.dirname, "../../..");

/** The source of a package version: a folder with its files, and an existing tarball, if any. */
interface Source {
  readonly folder: string;
  readonly tarball?: string;
}

export interface LocalRegistry {
  readonly url: string;
  close(): void;
}

/**
 * An npm registry with the given packages and everything in the clone's lockfile. It serves the packages installed in
 * the clone, so that installing needs neither a network nor npm's cache.
 */
export async function startLocalRegistry(
  packages: readonly { readonly name: string; readonly folder: string; readonly tarball: string }[],
): Promise<LocalRegistry> {
  const sources = new Map<string, Source[]>(packages.map(({ name, folder, tarball }) => [name, [{ folder, tarball }]]));
  const lock = JSON.parse(readFileSync(join(ROOT, "package-lock.json"), "utf8")) as {
    packages: Record<string, { readonly link?: boolean }>;
  };
  for (const [path, { link }] of Object.entries(lock.packages)) {
    const name = path.split("node_modules/").at(-1) ?? "";
    if (path.includes("node_modules/") && link !== true)
      sources.set(name, [...(sources.get(name) ?? []), { folder: join(ROOT, path) }]);
  }

  const server = createServer((request, response) => {
    const path = decodeURIComponent(request.url ?? "").slice(1);
    const [name = "", version] = path.split("/-/");
    const found = sources.get(name);
    const answer =
      found === undefined
        ? notFound(response)
        : version === undefined
          ? describe(name, found, response)
          : sendTarball(found[Number(version)], response);
    answer.catch(() => response.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return { url, close: () => server.close().closeAllConnections() };

  async function describe(name: string, found: readonly Source[], response: ServerResponse): Promise<void> {
    const versions: Record<string, object> = {};
    for (const [index, { folder }] of found.entries()) {
      const text = await readFile(join(folder, "package.json"), "utf8").catch(() => undefined);
      // Packages for other systems are in the lockfile, but not installed.
      if (text === undefined) continue;
      const manifest = JSON.parse(text) as { version: string };
      versions[manifest.version] = { ...manifest, dist: { tarball: `${url}/${name}/-/${index}` } };
    }
    const latest = Object.keys(versions)[0];
    if (latest === undefined) return await notFound(response);
    response.setHeader("content-type", "application/json");
    response.end(JSON.stringify({ name, versions, "dist-tags": { latest } }));
  }
}

async function notFound(response: ServerResponse): Promise<void> {
  response.writeHead(404).end("{}");
}

async function sendTarball(source: Source | undefined, response: ServerResponse): Promise<void> {
  if (source === undefined) return await notFound(response);
  if (source.tarball !== undefined) return void response.end(await readFile(source.tarball));
  const { folder } = source;
  // npm takes off the first folder, whatever its name is.
  const argv = ["-cf", "-", "--exclude=node_modules", "-C", dirname(folder), basename(folder)];
  await pipeline(spawn("tar", argv, { stdio: ["ignore", "pipe", "ignore"] }).stdout, response);
}
