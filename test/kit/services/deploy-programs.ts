/**
 * Programs for the tests of `deploy/`: proxies, Prometheus's checker, and debootstrap for the base of the image. `node
 * test/kit/services/deploy-programs.ts` gets them; existing files are left alone.
 */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { SERVERS_FOLDER } from "../store-servers/test-server.ts";
import { librariesOf, unpackFromDebian } from "./debian-unpack.ts";

const FOLDER = join(SERVERS_FOLDER, "deploy-programs-1");

export const deployPrograms = {
  caddy: join(FOLDER, "usr/bin/caddy"),
  nginx: join(FOLDER, "usr/sbin/nginx"),
  promtool: join(FOLDER, "usr/bin/promtool"),
  debootstrap: join(FOLDER, "usr/sbin/debootstrap"),
  debootstrapFolder: join(FOLDER, "usr/share/debootstrap"),
  /** `LD_LIBRARY_PATH` of the programs. */
  libraries: (): Promise<string> => librariesOf(FOLDER),
};

/** Undefined: they are here. */
export function whyNoDeployPrograms(): string | undefined {
  return existsSync(FOLDER) ? undefined : "They are not here. Run: node test/kit/services/deploy-programs.ts";
}

/** Gets them, which takes some seconds and needs the network. */
export async function prepareDeployPrograms(report: (line: string) => void): Promise<void> {
  if (existsSync(FOLDER)) return;
  const names = ["caddy", "nginx", "prometheus", "debootstrap"];
  await unpackFromDebian({ names, folder: FOLDER, purpose: "the tests of deploy/" }, report);
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  await prepareDeployPrograms((line) => process.stdout.write(`${line}\n`));
  const missing = whyNoDeployPrograms();
  if (missing !== undefined) process.stdout.write(`${missing}\n`);
  process.exitCode = missing === undefined ? 0 : 1;
}
