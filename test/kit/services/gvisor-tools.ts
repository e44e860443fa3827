/**
 * Programs that tests of gVisor need and a small machine lacks: Debian's, in the cache, where nothing is installed.
 * `node test/kit/services/gvisor-tools.ts` gets them; existing files are left alone.
 */
import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, symlink, writeFile } from "node:fs/promises";
import { delimiter, join } from "node:path";
import { pathToFileURL } from "node:url";
import { findProgram } from "../../../packages/server/src/setup/files.ts";
import { SERVERS_FOLDER } from "../store-servers/test-server.ts";
import { librariesOf, unpackFromDebian } from "./debian-unpack.ts";

const FOLDER = join(SERVERS_FOLDER, "gvisor-tools-2");
const BIN = "sandboxer-bin";
const PLACES = ["usr/sbin", "usr/bin", "sbin", "bin"];

/** By program, with the check that it has everything it needs. */
const TOOLS: Readonly<Record<string, { readonly package: string; readonly tryOut: string }>> = {
  ip: { package: "iproute2", tryOut: "-Version" },
  nft: { package: "nftables", tryOut: "--version" },
  skopeo: { package: "skopeo", tryOut: "--version" },
  umoci: { package: "umoci", tryOut: "--version" },
  "docker-registry": { package: "docker-registry", tryOut: "--version" },
  busybox: { package: "busybox-static", tryOut: "--help" },
};

/** The tests' search path: programs of the machine come first. */
export function withGvisorTools(searchPath: string): string {
  return existsSync(FOLDER) ? [searchPath, join(FOLDER, BIN)].join(delimiter) : searchPath;
}

export async function prepareGvisorTools(report: (line: string) => void): Promise<void> {
  if (missingTools().length === 0) return;
  const names = Object.values(TOOLS).map((tool) => tool.package);
  await unpackFromDebian({ names, folder: FOLDER, purpose: "the tests of gVisor", finish: offer }, report);
}

function missingTools(): string[] {
  const searchPath = withGvisorTools(process.env["PATH"] ?? "");
  return Object.keys(TOOLS).filter((name) => findProgram(name, searchPath) === undefined);
}

/** Each finds its libraries beside it. */
async function offer(folder: string): Promise<void> {
  await mkdir(join(folder, BIN));
  const libraries = (await librariesOf(folder)).replaceAll(folder, "$here");
  for (const [name, { tryOut }] of Object.entries(TOOLS)) {
    const place = PLACES.map((each) => join(each, name)).find((path) => existsSync(join(folder, path)));
    if (place === undefined) throw new Error(`Debian's packages have no ${name}.`);
    const offered = join(folder, BIN, name);
    // It is copied into root filesystems.
    if (name === "busybox") await symlink(join("..", place), offered);
    else {
      const script = `#!/bin/sh\nhere=$(dirname "$0")/..\nexec env LD_LIBRARY_PATH="${libraries}" "$here/${place}" "$@"\n`;
      await writeFile(offered, script, { mode: 0o755 });
    }
    execFileSync(offered, [tryOut], { stdio: "pipe" });
  }
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  await prepareGvisorTools((line) => process.stdout.write(`${line}\n`));
  const missing = missingTools();
  process.stdout.write(missing.length === 0 ? "They are here.\n" : `Missing: ${missing.join(", ")}\n`);
  process.exitCode = missing.length === 0 ? 0 : 1;
}
