/**
 * A chromium for the tests of the console, best a headless shell: the same engine without the window, the address bar and its
 * list of suggestions (a page of its own) that a whole browser makes for every context, which took a second of a processor for
 * each test. The system's, or Debian's package with the libraries that it needs, taken apart in the cache, where nothing is
 * installed. `node packages/server/test/services/chromium.ts` gets it; what is there is left alone.
 */
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { delimiter, join } from "node:path";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { KEYRING, privateAptOptions, readDebianMirror } from "../../src/setup/engine/debian-package.ts";
import { findProgram } from "../../src/setup/files.ts";
import { SERVERS_FOLDER } from "../store/servers/test-server.ts";

const run = promisify(execFile);
const LIMIT_MS = 5 * 60_000;
const PACKAGE = "chromium-headless-shell";
const FOLDER = join(SERVERS_FOLDER, `${PACKAGE}-1`);
const PROGRAM = join("usr/lib/chromium", PACKAGE);

/**
 * Of all that the package depends on: shared libraries and fonts. The C library is the machine's own, and what only a screen, a
 * desktop or a package manager needs is left out.
 */
const WANTED = /^(lib|zlib1g|chromium|fonts-|fontconfig-config)/;
const UNWANTED = /^lib(c6|gcc-s1|llvm|z3|gl1-mesa|systemd-shared|perl|gdbm|db5|pam|sem|cryptsetup|fdisk|.*-perl$)/;

/** A browser that tests can start. */
export interface FoundChromium {
  readonly path: string;
  /** What it needs besides the environment of the tests. */
  readonly env: Readonly<Record<string, string>>;
}

/** The one that `SANDBOXER_TEST_CHROMIUM` names, else a headless shell of the system or of the cache, else a whole browser of the system. */
export async function findChromium(): Promise<FoundChromium | { readonly missing: string }> {
  const light = await findLight();
  if (light !== undefined) return light;
  const path = findFirst(["chromium", "google-chrome-stable", "google-chrome"]);
  if (path !== undefined) return { path, env: {} };
  return {
    missing: "There is no chromium. Install one, or, as root on Debian: node packages/server/test/services/chromium.ts",
  };
}

async function findLight(): Promise<FoundChromium | undefined> {
  const path = process.env["SANDBOXER_TEST_CHROMIUM"] ?? findFirst([PACKAGE]);
  if (path !== undefined) return { path, env: {} };
  const cached = join(FOLDER, PROGRAM);
  return existsSync(cached) ? { path: cached, env: await environment(FOLDER) } : undefined;
}

function findFirst(names: readonly string[]): string | undefined {
  const searchPath = process.env["PATH"] ?? "";
  return names.map((name) => findProgram(name, searchPath)).find((found) => found !== undefined);
}

/** Gets a headless shell when there is none, which takes half a minute and needs the network; elsewhere than on Debian it does nothing. */
export async function prepareChromium(report: (line: string) => void): Promise<void> {
  if ((await findLight()) !== undefined || process.platform !== "linux" || process.getuid?.() !== 0) return;
  const suite = await debianSuite();
  if (suite === undefined) return;
  report("set-up: getting chromium from Debian for the tests of the console");
  await mkdir(SERVERS_FOLDER, { recursive: true });
  const scratch = await mkdtemp(join(SERVERS_FOLDER, "fetching-"));
  try {
    const kept = join(scratch, "kept");
    await unpack(scratch, kept, suite, AbortSignal.timeout(LIMIT_MS));
    // Loads every library, so that one that is missing shows here.
    const program = join(kept, PROGRAM);
    await run(program, ["--version"], { env: { ...process.env, ...(await environment(kept)) } });
    await rename(kept, FOLDER);
    report(`set-up: done: ${FOLDER}`);
  } catch (thrown) {
    report(`set-up: failed: ${(thrown as Error).message}`);
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
}

/** The machine's own, because the libraries are to fit its C library. */
async function debianSuite(): Promise<string | undefined> {
  const release = await readFile("/etc/os-release", "utf8").catch(() => "");
  if (!/^ID="?debian"?$/m.test(release)) return undefined;
  return /^VERSION_CODENAME="?(\w+)"?$/m.exec(release)?.[1];
}

async function unpack(scratch: string, kept: string, suite: string, signal: AbortSignal): Promise<void> {
  const mirror = await readDebianMirror("/etc/apt");
  if (mirror === undefined) throw new Error("apt's sources name no Debian mirror.");
  const apt = await privateAptOptions(scratch, { uri: mirror.uri, keyring: mirror.keyring ?? KEYRING, suite });
  const packages = join(scratch, "packages");
  await mkdir(packages);
  await run("apt-get", ["-qq", ...apt, "update"], { signal });
  const plan = ["-qq", ...apt, "install", "--simulate", "--no-install-recommends", PACKAGE];
  const { stdout } = await run("apt-get", plan, { signal, maxBuffer: 16 * 1024 * 1024 });
  const names = [...stdout.matchAll(/^Inst (\S+)/gm)].map(([, name]) => name ?? "");
  const wanted = names.filter((name) => WANTED.test(name) && !UNWANTED.test(name));
  await run("apt-get", ["-qq", ...apt, "download", ...wanted], { signal, cwd: packages });
  for (const file of await readdir(packages)) await run("dpkg-deb", ["-x", join(packages, file), kept], { signal });
  for (const name of ["usr/share/doc", "usr/share/locale", "usr/share/man"]) {
    await rm(join(kept, name), { recursive: true, force: true });
  }
}

/** Where the libraries and the fonts are. */
async function environment(folder: string): Promise<Record<string, string>> {
  const libraries: string[] = [];
  for (const base of ["usr/lib", "lib"]) {
    const names = await readdir(join(folder, base)).catch(() => []);
    const ofThisMachine = names.filter((name) => name.endsWith("-linux-gnu"));
    const inside = ["", "nss", "pulseaudio"];
    libraries.push(...ofThisMachine.flatMap((name) => inside.map((each) => join(folder, base, name, each))));
  }
  const fonts = join(folder, "fonts.conf");
  await writeFile(fonts, fontConfiguration(folder));
  return { LD_LIBRARY_PATH: libraries.join(delimiter), FONTCONFIG_FILE: fonts };
}

function fontConfiguration(folder: string): string {
  const families = { "sans-serif": "DejaVu Sans", serif: "DejaVu Serif", monospace: "DejaVu Sans Mono" };
  const aliases = Object.entries(families).map(
    ([generic, family]) => `<alias><family>${generic}</family><prefer><family>${family}</family></prefer></alias>`,
  );
  return `<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig>
  <dir>${join(folder, "usr/share/fonts")}</dir>
  <dir>/usr/share/fonts</dir>
  <cachedir>${join(folder, "font-cache")}</cachedir>
  ${aliases.join("\n  ")}
</fontconfig>
`;
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  await prepareChromium((line) => process.stdout.write(`${line}\n`));
  const found = await findChromium();
  process.stdout.write(`${"missing" in found ? found.missing : found.path}\n`);
  process.exitCode = "missing" in found ? 1 : 0;
}
