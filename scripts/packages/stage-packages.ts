import { existsSync } from "node:fs";
import { cp, mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { type BuildOptions, buildPackages } from "./build-packages.ts";
import { packedManifest } from "./manifest.ts";
import { type PublicPackage, ROOT } from "./public-package.ts";

export interface StagedPackage {
  readonly name: string;
  /** The files of the package, as they are installed. */
  readonly folder: string;
}

/** Builds every public package, each into a folder with everything that is published. The console must have been built. */
export async function stagePackages(
  folderOf: (published: PublicPackage) => string,
  options: BuildOptions = {},
): Promise<readonly StagedPackage[]> {
  const built = await buildPackages((published) => join(folderOf(published), "dist"), options);
  const staged: StagedPackage[] = [];
  for (const { published, imported } of built) {
    const folder = folderOf(published);
    const copied = {
      ...published.shipped,
      "README.md": `packages/${published.folder}/README.md`,
      LICENSE: "LICENSE",
    };
    for (const [place, source] of Object.entries(copied)) {
      // Without it the server says how to build it, so that tests need not.
      if (place === "docs" && !existsSync(join(ROOT, source))) continue;
      await mkdir(dirname(join(folder, place)), { recursive: true });
      await cp(join(ROOT, source), join(folder, place), { recursive: true });
    }
    await writeFile(join(folder, "package.json"), `${JSON.stringify(packedManifest(published, imported), null, 2)}\n`);
    staged.push({ name: published.manifest.name, folder });
  }
  return staged;
}
