import { rm } from "node:fs/promises";
import { join } from "node:path";
import { bundle } from "./bundle.ts";
import { Declarations } from "./declarations.ts";
import { PUBLIC_PACKAGES, type PublicPackage } from "./public-package.ts";

export interface BuiltPackage {
  readonly published: PublicPackage;
  /** The packages that the built files and their types import. */
  readonly imported: ReadonlySet<string>;
}

export interface BuildOptions {
  /** Without types it takes half the time, for tests that only run what is built. */
  readonly types?: boolean;
}

/** Builds every public package into a folder of its own: JavaScript, source maps and, in `types`, declarations. */
export async function buildPackages(
  distOf: (published: PublicPackage) => string,
  { types = true }: BuildOptions = {},
): Promise<readonly BuiltPackage[]> {
  await using declarations = types ? await Declarations.compile() : undefined;
  const built: BuiltPackage[] = [];
  for (const published of PUBLIC_PACKAGES) {
    const into = distOf(published);
    await rm(into, { recursive: true, force: true });
    const code = await bundle(published, into);
    const described = await declarations?.write(published, join(into, "types"));
    built.push({ published, imported: code.union(described ?? new Set()) });
  }
  return built;
}
