/**
 * A chromium for the tests of the console, best a headless shell: the same engine without the window, the address bar and its
 * list of suggestions (a page of its own) that a whole browser makes for every context, which took a second of a processor for
 * each test. The system's, or Debian's package with the libraries that it needs, taken apart in the cache, where nothing is
 * installed. `node test/kit/services/chromium.ts` gets it; an existing one is left alone.
 */
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { findProgram } from "../../../packages/server/src/setup/files.ts";
import { SERVERS_FOLDER } from "../store-servers/test-server.ts";
import { librariesOf, unpackFromDebian } from "./debian-unpack.ts";

const PACKAGE = "chromium-headless-shell";
const FOLDER = join(SERVERS_FOLDER, `${PACKAGE}-1`);
const PROGRAM = join("usr/lib/chromium", PACKAGE);

/** A browser that tests can start. */
export interface FoundChromium {
  readonly path: string;
  /** Variables that it needs besides the environment of the tests. */
  readonly env: Readonly<Record<string, string>>;
}

/** The one that `SANDBOXER_TEST_CHROMIUM` names, else a headless shell of the system or of the cache, else a whole browser of the system. */
export async function findChromium(): Promise<FoundChromium | { readonly missing: string }> {
  const light = await findLight();
  if (light !== undefined) return light;
  const path = findFirst(["chromium", "google-chrome-stable", "google-chrome"]);
  if (path !== undefined) return { path, env: {} };
  return {
    missing: "There is no chromium. Install one, or, as root on Debian: node test/kit/services/chromium.ts",
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
  if ((await findLight()) !== undefined) return;
  // Loads every library, so that one that is missing shows here.
  const finish = async (folder: string): Promise<void> => {
    const env = { ...process.env, ...(await environment(folder)) };
    await promisify(execFile)(join(folder, PROGRAM), ["--version"], { env });
  };
  await unpackFromDebian({ names: [PACKAGE], folder: FOLDER, purpose: "the tests of the console", finish }, report);
}

/** The variables that name the libraries and the fonts. */
async function environment(folder: string): Promise<Record<string, string>> {
  const fonts = join(folder, "fonts.conf");
  await writeFile(fonts, fontConfiguration(folder));
  return { LD_LIBRARY_PATH: await librariesOf(folder), FONTCONFIG_FILE: fonts };
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
