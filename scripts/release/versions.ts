import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";

interface PackageFile {
  name: string;
  version: string;
  [key: string]: unknown;
}

const DEPENDENCIES = ["dependencies", "devDependencies", "peerDependencies", "optionalDependencies"] as const;

/** The wheel has the version of the npm packages. */
const PYTHON_VERSION = "clients/python/src/sandboxer/_version.py";

/** The chart has the version of the image that it deploys. */
const CHART = "deploy/helm/sandboxer/Chart.yaml";

/** All files that say the version, with the text they have at another one. Only files that change are listed. */
export function filesAtVersion(root: string, version: string): Map<string, string> {
  const paths = ["package.json", ...globSync("packages/*/package.json", { cwd: root }).toSorted()];
  const names = new Set(paths.map((path) => read(root, path).name));
  const files = new Map(paths.map((path) => [path, written(atVersion(read(root, path), names, version))]));
  const lock = JSON.parse(readFileSync(join(root, "package-lock.json"), "utf8")) as PackageFile & {
    packages: Record<string, PackageFile>;
  };
  lock.version = version;
  for (const [path, entry] of Object.entries(lock.packages)) {
    if (path === "" || path.startsWith("packages/")) atVersion(entry, names, version);
  }
  files.set("package-lock.json", written(lock));
  const python = readFileSync(join(root, PYTHON_VERSION), "utf8");
  files.set(PYTHON_VERSION, python.replace(/"[^"]*"/, `"${version}"`));
  const chart = readFileSync(join(root, CHART), "utf8");
  files.set(CHART, chart.replaceAll(/^(version|appVersion): .*$/gm, `$1: ${version}`));
  return new Map([...files].filter(([path, text]) => readFileSync(join(root, path), "utf8") !== text));
}

function atVersion(file: PackageFile, names: ReadonlySet<string>, version: string): PackageFile {
  file.version = version;
  for (const kind of DEPENDENCIES) {
    const dependencies = file[kind] as Record<string, string> | undefined;
    for (const name of Object.keys(dependencies ?? {})) {
      if (names.has(name) && dependencies !== undefined) dependencies[name] = version;
    }
  }
  return file;
}

function read(root: string, path: string): PackageFile {
  return JSON.parse(readFileSync(join(root, path), "utf8")) as PackageFile;
}

function written(value: unknown): string {
  return `${JSON.stringify(value, undefined, 2)}\n`;
}
