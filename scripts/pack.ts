/** `npm run pack`: builds and packs every public package. `npm run pack -- FOLDER` says where; by default `build/packages`. */
import { join, resolve } from "node:path";
import { bootstrap } from "./bootstrap.mjs";
import { packPackages } from "./packages/pack-packages.ts";
import { ROOT } from "./packages/public-package.ts";

// The console goes into the server's package.
await bootstrap();
const folder = resolve(process.argv[2] ?? join(ROOT, "build", "packages"));
for (const { tarball } of await packPackages(folder)) process.stdout.write(`${tarball}\n`);
