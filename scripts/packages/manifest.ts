import { readFileSync } from "node:fs";
import { entryName, type Manifest, type PublicPackage, ROOT } from "./public-package.ts";

/** Fields of the clone's package.json that mean nothing to users of the package. */
const OF_THE_CLONE = new Set(["private", "devDependencies", "scripts"]);

/**
 * The package.json that is published. In the clone `exports` lead to the TypeScript, which runs as it is; here they lead
 * to what was built. npm has no setting for that difference. Only dependencies that built files import stay.
 */
export function packedManifest(
  { folder, manifest, shipped }: PublicPackage,
  imported: ReadonlySet<string>,
): Record<string, unknown> {
  const missing = [...imported].filter(
    (name) => name !== manifest.name && !(name in { ...manifest.dependencies, ...manifest.peerDependencies }),
  );
  if (missing.length > 0) throw new Error(`${manifest.name} imports ${missing.join(", ")} without a dependency on it`);
  const { repository } = JSON.parse(readFileSync(`${ROOT}package.json`, "utf8")) as { repository: object };
  const kept = Object.entries(manifest).filter(([field]) => !OF_THE_CLONE.has(field));
  const dependencies = Object.entries(manifest.dependencies ?? {}).filter(([name]) => imported.has(name));
  return {
    ...Object.fromEntries(kept),
    publishConfig: { access: "public" },
    repository: { ...repository, directory: `packages/${folder}` },
    exports: packedExports(manifest),
    files: ["dist", ...new Set(Object.keys(shipped).map((path) => path.split("/")[0]))],
    dependencies: Object.fromEntries(dependencies),
  };
}

function packedExports({ exports = {} }: Manifest): Record<string, unknown> {
  const built = Object.entries(exports).map(([name, file]) => {
    const types = file.replace(/^\.\/src\//, "./dist/types/").replace(/\.ts$/, ".d.ts");
    return [name, { types, default: `./dist/${entryName(name)}.js` }];
  });
  return { ...Object.fromEntries(built), "./package.json": "./package.json" };
}
