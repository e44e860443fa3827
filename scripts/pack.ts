/** `npm run pack`: builds and packs every public package. `npm run pack -- FOLDER` says where; by default `build/packages`. */
import { execFileSync } from "node:child_process";
import { join, resolve } from "node:path";
import { bootstrap, isConsoleBuilt } from "./bootstrap.mjs";
import { packPackages } from "./packages/pack-packages.ts";
import { ROOT } from "./packages/public-package.ts";

// The console and the documentation go into the server's package.
await bootstrap();
if (!isConsoleBuilt(ROOT)) throw new Error("The console could not be built.");
execFileSync("npm", ["run", "docs"], { cwd: ROOT, stdio: ["ignore", "ignore", "inherit"] });
const folder = resolve(process.argv[2] ?? join(ROOT, "build", "packages"));
for (const { tarball } of await packPackages(folder)) process.stdout.write(`${tarball}\n`);
