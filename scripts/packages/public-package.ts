import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

export const ROOT = fileURLToPath(new URL("../..", import.meta.url));

/** A package that is published. Its package.json is the clone's; `packedManifest` makes the published one from it. */
export interface PublicPackage {
  readonly folder: string;
  readonly manifest: Manifest;
  /** Source files by the name of the built file: every export, and files that the code loads by their address. */
  readonly entries: Readonly<Record<string, string>>;
  /** Entries that are one file with everything in it, for browsers that load it without a build step. */
  readonly standalone: readonly string[];
  /** Entries whose code is loaded at once, in few files. In this order: code that two of them need is the first one's. */
  readonly gathered: readonly string[];
  /** Libraries that are installed beside the package. All others are bundled into it. */
  readonly libraries: readonly string[];
  /** Files and folders of the clone that the package needs at run time, by their place in the package. `docs` may be missing. */
  readonly shipped: Readonly<Record<string, string>>;
}

export interface Manifest {
  readonly [field: string]: unknown;
  readonly name: string;
  readonly version: string;
  readonly exports?: Readonly<Record<string, string>>;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly peerDependencies?: Readonly<Record<string, string>>;
}

export const PUBLIC_PACKAGES: readonly PublicPackage[] = [
  publicPackage("protocol", { libraries: ["zod"] }),
  publicPackage("client", { standalone: ["browser"], gathered: ["transport"] }),
  publicPackage("ai-sdk", { libraries: ["@ai-sdk/harness"] }),
  publicPackage("mcp"),
  publicPackage("server", {
    // Large, and needed only with a store of that kind.
    libraries: ["@aws-sdk/client-s3", "google-auth-library"],
    addressed: { "block-worker": "./src/checkpoints/blocks/block-worker.ts" },
    gathered: ["block-worker", "config", "index"],
    shipped: {
      drivers: "packages/server/drivers",
      profiles: "packages/server/profiles",
      console: "packages/console/dist",
      docs: "docs/.vitepress/dist",
      "agent/src": "agent/src",
      "agent/Makefile": "agent/Makefile",
    },
  }),
  publicPackage("cli", {
    addressed: { main: "./src/main.ts", serve: "./src/commands/serve.ts" },
    gathered: ["main", "serve"],
    shipped: { bin: "packages/cli/bin" },
  }),
];

function publicPackage(
  folder: string,
  options: Partial<Pick<PublicPackage, "libraries" | "shipped" | "standalone" | "gathered">> & {
    readonly addressed?: Readonly<Record<string, string>>;
  } = {},
): PublicPackage {
  const { addressed = {}, ...given } = options;
  const defaults = { libraries: [], shipped: {}, standalone: [], gathered: [] };
  const manifest = JSON.parse(readFileSync(`${ROOT}packages/${folder}/package.json`, "utf8")) as Manifest;
  const exported = Object.entries(manifest.exports ?? {}).map(([name, file]) => [entryName(name), file]);
  const entries = { ...Object.fromEntries(exported), ...addressed };
  return { ...defaults, ...given, folder, manifest, entries };
}

/** The name of the built file of an export: `.` is index, `./node` is node. */
export function entryName(exportName: string): string {
  return exportName === "." ? "index" : exportName.slice("./".length);
}
