/**
 * Programs of Debian's archive for tests that need real services, taken apart in the cache: nothing is installed, and
 * the system stays as it is. `node test/kit/services/debian-programs.ts` gets them; existing files are left alone.
 */
import { existsSync } from "node:fs";
import { copyFile, mkdir, mkdtemp, readdir, rename, rm } from "node:fs/promises";
import { basename, join } from "node:path";
import { pathToFileURL } from "node:url";
import {
  KEYRING,
  privateAptOptions,
  readDebianMirror,
} from "../../../packages/server/src/setup/engine/debian-package.ts";
import { runProgram } from "../store-servers/run-program.ts";
import { SERVERS_FOLDER } from "../store-servers/test-server.ts";

const LIMIT_MS = 5 * 60_000;

/**
 * Docker from trixie, because bookworm has no compose plugin; its programs run on bookworm's libraries too. runc from
 * bookworm, because trixie's wants a newer libc.
 */
const PACKAGES: Readonly<Record<string, readonly string[]>> = {
  trixie: ["docker.io", "docker-cli", "docker-compose", "containerd"],
  bookworm: ["runc", "openssh-server", "libwrap0", "busybox-static"],
};

const PROGRAMS = [
  "usr/sbin/dockerd",
  "usr/sbin/docker-proxy",
  "usr/bin/docker",
  "usr/bin/containerd",
  "usr/bin/containerd-shim-runc-v2",
  "usr/sbin/runc",
  "usr/sbin/sshd",
  "bin/busybox",
];
const COMPOSE = "usr/libexec/docker/cli-plugins/docker-compose";
const LIBRARY = "libwrap.so.0";

const FOLDER = join(SERVERS_FOLDER, "debian-programs-1");

export const debianPrograms = {
  /** Programs by their names. */
  bin: join(FOLDER, "bin"),
  /** Shared libraries that a small machine lacks. */
  lib: join(FOLDER, "lib"),
  /** The compose plugin, as `cliPluginsExtraDirs` of Docker's configuration takes it. */
  plugins: join(FOLDER, "cli-plugins"),
};

/** Undefined if real services can be started here. */
export function whyNoServices(): string | undefined {
  if (process.platform !== "linux" || process.getuid?.() !== 0) return "Docker and sshd need Linux and root.";
  if (!existsSync(FOLDER)) return "They are not here. Run: node test/kit/services/debian-programs.ts";
  return undefined;
}

/** Gets the programs, which takes some seconds and needs the network. */
export async function prepareDebianPrograms(report: (line: string) => void): Promise<void> {
  if (existsSync(FOLDER) || process.platform !== "linux" || process.getuid?.() !== 0) return;
  report("set-up: getting Docker and sshd from Debian for the tests of extensions");
  await mkdir(SERVERS_FOLDER, { recursive: true });
  const scratch = await mkdtemp(join(SERVERS_FOLDER, "fetching-"));
  try {
    const signal = AbortSignal.timeout(LIMIT_MS);
    for (const [suite, names] of Object.entries(PACKAGES))
      await unpackSuite(join(scratch, suite), suite, names, signal);
    await collect(scratch, join(scratch, "kept"));
    await rename(join(scratch, "kept"), FOLDER);
    report(`set-up: done: ${FOLDER}`);
  } catch (thrown) {
    report(`set-up: failed: ${(thrown as Error).message}`);
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
}

/** Takes packages of a suite apart in `unpacked` of the folder, without those that they depend on. */
export async function unpackSuite(
  folder: string,
  suite: string,
  names: readonly string[],
  signal: AbortSignal,
): Promise<void> {
  const mirror = await readDebianMirror("/etc/apt");
  if (mirror === undefined) throw new Error("apt's sources name no Debian mirror.");
  await mkdir(join(folder, "packages"), { recursive: true });
  const options = await privateAptOptions(folder, { uri: mirror.uri, keyring: mirror.keyring ?? KEYRING, suite });
  await runProgram(["apt-get", "-qq", ...options, "update"], { signal });
  const fetch = `cd "$1" && shift && exec apt-get -qq "$@"`;
  await runProgram(["sh", "-c", fetch, "sh", join(folder, "packages"), ...options, "download", ...names], { signal });
  for (const file of await readdir(join(folder, "packages"))) {
    await runProgram(["dpkg-deb", "-x", join(folder, "packages", file), join(folder, "unpacked")], { signal });
  }
}

async function collect(scratch: string, kept: string): Promise<void> {
  for (const name of ["bin", "lib", "cli-plugins"]) await mkdir(join(kept, name), { recursive: true });
  const suites = Object.keys(PACKAGES).map((suite) => join(scratch, suite, "unpacked"));
  const find = (path: string): string => {
    const found = suites.map((suite) => join(suite, path)).find((candidate) => existsSync(candidate));
    if (found === undefined) throw new Error(`Debian's packages have no ${path}.`);
    return found;
  };
  for (const program of PROGRAMS) await copyFile(find(program), join(kept, "bin", basename(program)));
  await copyFile(find(COMPOSE), join(kept, "cli-plugins", "docker-compose"));

  const folders = await Promise.all(suites.map((suite) => readdir(join(suite, "usr/lib")).catch(() => [])));
  const libraries = suites.flatMap((suite, at) =>
    (folders[at] ?? []).map((name) => join(suite, "usr/lib", name, LIBRARY)),
  );
  const library = libraries.find((path) => existsSync(path));
  if (library === undefined) throw new Error(`Debian's packages have no ${LIBRARY}.`);
  await copyFile(library, join(kept, "lib", LIBRARY));
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  await prepareDebianPrograms((line) => process.stdout.write(`${line}\n`));
  const missing = whyNoServices();
  if (missing !== undefined) process.stdout.write(`${missing}\n`);
  process.exitCode = missing === undefined ? 0 : 1;
}
