/** `npm run build`: builds every public package into its `dist`. The clone does not use it; the packages contain it. */
import { join } from "node:path";
import { buildPackages } from "./packages/build-packages.ts";
import { ROOT } from "./packages/public-package.ts";

const distOf = (folder: string): string => join(ROOT, "packages", folder, "dist");
for (const { published } of await buildPackages(({ folder }) => distOf(folder)))
  process.stdout.write(`${published.manifest.name}  packages/${published.folder}/dist\n`);
