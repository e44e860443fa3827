import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { cp, mkdir, readdir, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { type BuildOptions, buildPackages } from "./build-packages.ts";
import { packedManifest } from "./manifest.ts";
import { ROOT } from "./public-package.ts";

export interface PackedPackage {
  readonly name: string;
  readonly tarball: string;
  /** The files of the tarball, unpacked. */
  readonly folder: string;
}

/** Builds and packs every public package into `folder`, as it is published. The console must have been built. */
export async function packPackages(folder: string, options: BuildOptions = {}): Promise<readonly PackedPackage[]> {
  await removeEarlier(folder);
  const stageOf = (name: string): string => join(folder, "staging", name);
  const built = await buildPackages((published) => join(stageOf(published.folder), "dist"), options);
  const packages: PackedPackage[] = [];
  for (const { published, imported } of built) {
    const stage = stageOf(published.folder);
    const copied = {
      ...published.shipped,
      "README.md": `packages/${published.folder}/README.md`,
      LICENSE: "LICENSE",
    };
    for (const [place, source] of Object.entries(copied)) {
      // Without it the server says how to build it, so that tests need not.
      if (place === "docs" && !existsSync(join(ROOT, source))) continue;
      await mkdir(dirname(join(stage, place)), { recursive: true });
      await cp(join(ROOT, source), join(stage, place), { recursive: true });
    }
    await writeFile(join(stage, "package.json"), `${JSON.stringify(packedManifest(published, imported), null, 2)}\n`);
    const pack = ["pack", "--json", "--ignore-scripts", "--pack-destination", folder];
    const { stdout } = await promisify(execFile)("npm", pack, { cwd: stage });
    const [packed] = JSON.parse(stdout) as { filename: string }[];
    const { name } = published.manifest;
    packages.push({ name, tarball: join(folder, packed?.filename ?? ""), folder: stage });
  }
  return packages;
}

/** Files of an earlier run would be packed too, and earlier tarballs published. */
async function removeEarlier(folder: string): Promise<void> {
  await mkdir(folder, { recursive: true });
  const tarballs = (await readdir(folder)).filter((name) => /^sandboxer-\w+-.*\.tgz$/.test(name));
  for (const name of ["staging", ...tarballs]) await rm(join(folder, name), { recursive: true, force: true });
}
