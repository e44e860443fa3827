/**
 * Adds to package-lock.json the packages for other systems that a registry mirror did not have when the lockfile was
 * made. npm leaves those out, and `npm ci` then refuses the lockfile, everywhere. Run it after `npm install`:
 * `npm run lockfile` does both. Packages for this system are never added: they have to come with their checksum.
 *
 * It also removes what optional packages say about the Node that they need: an npm on an older Node leaves those out, and
 * says nothing, but they run on the Node that comes with them.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const SYSTEMS = ["aix", "android", "darwin", "freebsd", "linux", "netbsd", "openbsd", "openharmony", "sunos", "win32"];
const PROCESSORS = ["arm64", "arm", "ia32", "loong64", "mips64el", "ppc64", "riscv64", "s390x", "wasm32", "x64"];

/** The optional dependencies without an entry, as [name, version, entry of the dependent]. */
export function missingOptional(packages) {
  return Object.entries(packages).flatMap(([path, entry]) =>
    Object.entries(entry.optionalDependencies ?? {})
      .filter(([name]) => !(`node_modules/${name}` in packages) && !(`${path}/node_modules/${name}` in packages))
      .map(([name, version]) => [name, version, entry]),
  );
}

export function completeLockfile(lockfile) {
  const packages = { ...lockfile.packages };
  for (const [name, version, wantedBy] of missingOptional(packages)) {
    packages[`node_modules/${name}`] = foreignPackage(name, version, wantedBy);
  }
  for (const [path, { engines: _, ...entry }] of Object.entries(packages))
    if (entry.optional === true) packages[path] = entry;
  const sorted = Object.entries(packages).toSorted(([first], [second]) => first.localeCompare(second, "en"));
  return { ...lockfile, packages: Object.fromEntries(sorted) };
}

function foreignPackage(name, version, wantedBy) {
  const words = name.split(/[-/]/);
  const system = SYSTEMS.find((word) => words.includes(word));
  const processor = PROCESSORS.find((word) => words.includes(word));
  if (!/^\d/.test(version) || processor === undefined)
    throw new Error(`${name}@${version}: its system is not clear from its name`);
  const musl = words.some((word) => word.startsWith("musl"));
  if (system === process.platform && processor === process.arch && !musl) {
    throw new Error(`${name}@${version} is for this system; the registry must have it`);
  }
  return {
    version,
    cpu: [processor],
    ...(wantedBy.dev === true ? { dev: true } : {}),
    ...(system === "linux" ? { libc: [musl ? "musl" : "glibc"] } : {}),
    optional: true,
    ...(system === undefined ? {} : { os: [system] }),
    ...(wantedBy.peer === true ? { peer: true } : {}),
  };
}

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const path = new URL("../package-lock.json", import.meta.url);
  const lockfile = JSON.parse(readFileSync(path, "utf8"));
  writeFileSync(path, `${JSON.stringify(completeLockfile(lockfile), null, 2)}\n`);
}
