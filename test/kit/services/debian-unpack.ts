/** Debian's packages with their dependencies, unpacked in the cache: the system is not changed. */
import { execFile } from "node:child_process";
import { mkdir, mkdtemp, readdir, readFile, rename, rm } from "node:fs/promises";
import { delimiter, join } from "node:path";
import { promisify } from "node:util";
import {
  KEYRING,
  privateAptOptions,
  readDebianMirror,
} from "../../../packages/server/src/setup/engine/debian-package.ts";
import { SERVERS_FOLDER } from "../store-servers/test-server.ts";

const run = promisify(execFile);
const LIMIT_MS = 5 * 60_000;

/**
 * The dependencies to unpack: shared libraries and fonts. The C library is the machine's own; packages for a screen, a
 * desktop or a package manager are left out.
 */
const WANTED = /^(lib|zlib1g|chromium|fonts-|fontconfig-config)/;
const UNWANTED = /^lib(c6|gcc-s1|llvm|z3|gl1-mesa|systemd-shared|perl|gdbm|db5|pam|sem|cryptsetup|fdisk|.*-perl$)/;

export interface UnpackedPackages {
  readonly names: readonly string[];
  /** The folder of the unpacked packages. */
  readonly folder: string;
  /** The tests that need them. */
  readonly purpose: string;
  /** Makes the kept files from the unpacked packages, and tries them. */
  readonly finish?: (unpacked: string) => Promise<void>;
}

/** Unpacks them, which takes seconds and needs the network. Without Debian or root, it does nothing. */
export async function unpackFromDebian(packages: UnpackedPackages, report: (line: string) => void): Promise<void> {
  const suite = await debianSuite();
  if (suite === undefined) return;
  report(`set-up: getting ${packages.names.join(", ")} from Debian for ${packages.purpose}`);
  await mkdir(SERVERS_FOLDER, { recursive: true });
  const scratch = await mkdtemp(join(SERVERS_FOLDER, "fetching-"));
  try {
    const unpacked = join(scratch, "unpacked");
    await unpack(packages.names, suite, scratch, unpacked);
    await packages.finish?.(unpacked);
    await rename(unpacked, packages.folder);
    report(`set-up: done: ${packages.folder}`);
  } catch (thrown) {
    report(`set-up: failed: ${(thrown as Error).message}`);
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
}

/** The machine's own, because the libraries must fit its C library. */
async function debianSuite(): Promise<string | undefined> {
  if (process.platform !== "linux" || process.getuid?.() !== 0) return undefined;
  const release = await readFile("/etc/os-release", "utf8").catch(() => "");
  if (!/^ID="?debian"?$/m.test(release)) return undefined;
  return /^VERSION_CODENAME="?(\w+)"?$/m.exec(release)?.[1];
}

async function unpack(names: readonly string[], suite: string, scratch: string, unpacked: string): Promise<void> {
  const mirror = await readDebianMirror("/etc/apt");
  if (mirror === undefined) throw new Error("apt's sources name no Debian mirror.");
  const apt = await privateAptOptions(scratch, { uri: mirror.uri, keyring: mirror.keyring ?? KEYRING, suite });
  const archives = join(scratch, "packages");
  await mkdir(archives);
  const signal = AbortSignal.timeout(LIMIT_MS);
  await run("apt-get", ["-qq", ...apt, "update"], { signal });
  const plan = ["-qq", ...apt, "install", "--simulate", "--no-install-recommends", ...names];
  const { stdout } = await run("apt-get", plan, { signal, maxBuffer: 16 * 1024 * 1024 });
  const all = [...stdout.matchAll(/^Inst (\S+)/gm)].map(([, name]) => name ?? "");
  const wanted = all.filter((name) => names.includes(name) || (WANTED.test(name) && !UNWANTED.test(name)));
  await run("apt-get", ["-qq", ...apt, "download", ...wanted], { signal, cwd: archives });
  for (const file of await readdir(archives)) await run("dpkg-deb", ["-x", join(archives, file), unpacked], { signal });
  for (const name of ["usr/share/doc", "usr/share/locale", "usr/share/man"]) {
    await rm(join(unpacked, name), { recursive: true, force: true });
  }
}

/** `LD_LIBRARY_PATH` for the programs in the folder. */
export async function librariesOf(folder: string): Promise<string> {
  const libraries: string[] = [];
  for (const base of ["usr/lib", "lib"]) {
    const names = await readdir(join(folder, base)).catch(() => []);
    const ofThisMachine = names.filter((name) => name.endsWith("-linux-gnu"));
    const inside = ["", "nss", "pulseaudio"];
    libraries.push(...ofThisMachine.flatMap((name) => inside.map((each) => join(folder, base, name, each))));
  }
  return libraries.join(delimiter);
}
