import { existsSync } from "node:fs";
import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { findProgram, hashFile } from "../files.ts";
import { tellingLine, runCommand } from "../run-command.ts";
import { findDebianMirror, type DebianMirror } from "./apt-sources.ts";
import { inScratchDirectory } from "../scratch.ts";
import { installEngine } from "./cache.ts";
import { DEBIAN_RUNSC, requireChecksum } from "./checksums.ts";
import type { EngineSource } from "./source.ts";

/** Bookworm's own package is of 2022 and too old; trixie's and sid's are the same as this one. */
const SUITE = "bookworm-backports";
export const KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg";

export const debianPackage = debianPackageFrom("/etc/apt", DEBIAN_RUNSC[process.arch]);

/** Unpacks the package in a private folder: the system's packages and apt's lists are not changed. */
export function debianPackageFrom(aptDirectory: string, sha256: string | undefined): EngineSource {
  return {
    name: "Debian package",
    message: `Fetching runsc from Debian's ${SUITE}`,
    timeoutMs: 180_000,
    async find({ cacheDirectory, scratchDirectory = cacheDirectory, searchPath }, signal) {
      const aptGet = findProgram("apt-get", searchPath);
      const dpkgDeb = findProgram("dpkg-deb", searchPath);
      if (aptGet === undefined || dpkgDeb === undefined) return { skipped: "apt-get and dpkg-deb are not installed." };
      const mirror = await readDebianMirror(aptDirectory);
      if (mirror === undefined) return { skipped: "apt's sources name no Debian mirror." };
      const keyring = mirror.keyring ?? KEYRING;
      if (!existsSync(keyring)) return { skipped: `No keyring at ${keyring} to check the package with.` };

      return inScratchDirectory(scratchDirectory, async (directory) => {
        const apt = [
          aptGet,
          "-qq",
          ...(await privateAptOptions(directory, { ...mirror, keyring, suite: SUITE })),
        ] as const;
        for (const command of [["update"], ["download", "runsc"]]) {
          const result = await runCommand([...apt, ...command], { signal, workingDirectory: directory });
          if (result.code !== 0) return { skipped: `apt-get ${command.join(" ")}: ${tellingLine(result)}` };
        }
        const packageFile = (await readdir(directory)).find((name) => name.endsWith(".deb"));
        if (packageFile === undefined) return { skipped: `${SUITE} has no runsc for this machine.` };
        const unpacked = join(directory, "unpacked");
        const result = await runCommand([dpkgDeb, "-x", join(directory, packageFile), unpacked], { signal });
        if (result.code !== 0) return { skipped: `dpkg-deb: ${tellingLine(result)}` };
        const candidate = join(unpacked, "usr", "bin", "runsc");
        const hint = "If Debian has a new build that you trust, install it yourself and start with --runsc PATH.";
        requireChecksum(`The runsc of ${packageFile}`, await hashFile(candidate), sha256, hint);
        const engine = await installEngine(cacheDirectory, candidate, this.name, signal);
        return { value: engine, message: `runsc ${engine.version} from ${packageFile}, at ${engine.path}` };
      });
    },
  };
}

/** The mirror that this machine's apt uses. */
export async function readDebianMirror(aptDirectory: string): Promise<DebianMirror | undefined> {
  const parts = join(aptDirectory, "sources.list.d");
  const names = (await readdir(parts).catch(() => [])).toSorted().filter((name) => /\.(list|sources)$/.test(name));
  for (const path of [...names.map((name) => join(parts, name)), join(aptDirectory, "sources.list")]) {
    const mirror = findDebianMirror(path, await readFile(path, "utf8").catch(() => ""));
    if (mirror !== undefined) return mirror;
  }
  return undefined;
}

/** Options with which apt-get reads one suite and keeps everything in the folder. */
export async function privateAptOptions(
  directory: string,
  { uri, keyring, suite }: { readonly uri: string; readonly keyring: string; readonly suite: string },
): Promise<string[]> {
  await mkdir(join(directory, "lists", "partial"), { recursive: true });
  await mkdir(join(directory, "cache", "archives", "partial"), { recursive: true });
  await writeFile(join(directory, "status"), "");
  await writeFile(join(directory, "sources.list"), `deb [signed-by=${keyring}] ${uri} ${suite} main\n`);
  return [
    `Dir::Etc::sourcelist=${join(directory, "sources.list")}`,
    "Dir::Etc::sourceparts=-",
    `Dir::State::lists=${join(directory, "lists")}`,
    `Dir::State::status=${join(directory, "status")}`,
    `Dir::Cache=${join(directory, "cache")}`,
    "Acquire::Languages=none",
    "Acquire::Retries=1",
    "Acquire::http::Timeout=10",
    "Acquire::https::Timeout=10",
    // apt's own user may not enter a private directory.
    "APT::Sandbox::User=root",
  ].flatMap((option) => ["-o", option]);
}
