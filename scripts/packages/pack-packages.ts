import { execFile } from "node:child_process";
import { mkdir, readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import type { BuildOptions } from "./build-packages.ts";
import { type StagedPackage, stagePackages } from "./stage-packages.ts";

export interface PackedPackage extends StagedPackage {
  readonly tarball: string;
}

/** Builds and packs every public package into `folder`, as it is published. The console must have been built. */
export async function packPackages(folder: string, options: BuildOptions = {}): Promise<readonly PackedPackage[]> {
  await removeEarlier(folder);
  const packages: PackedPackage[] = [];
  for (const staged of await stagePackages((published) => join(folder, "staging", published.folder), options)) {
    const pack = ["pack", "--json", "--ignore-scripts", "--pack-destination", folder];
    const { stdout } = await promisify(execFile)("npm", pack, { cwd: staged.folder });
    const [packed] = JSON.parse(stdout) as { filename: string }[];
    packages.push({ ...staged, tarball: join(folder, packed?.filename ?? "") });
  }
  return packages;
}

/** Files of an earlier run would be packed too, and earlier tarballs published. */
async function removeEarlier(folder: string): Promise<void> {
  await mkdir(folder, { recursive: true });
  const tarballs = (await readdir(folder)).filter((name) => /^sandboxer-\w+-.*\.tgz$/.test(name));
  for (const name of ["staging", ...tarballs]) await rm(join(folder, name), { recursive: true, force: true });
}
