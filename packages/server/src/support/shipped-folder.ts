import { existsSync } from "node:fs";
import { dirname, join } from "node:path";

/** Where each folder is, seen from the package: in the package itself when it is installed, else in the clone. */
const PLACES = {
  agent: ["agent", "../../agent"],
  console: ["console", "../console/dist"],
  docs: ["docs", "../../docs/.vitepress/dist"],
  drivers: ["drivers"],
  profiles: ["profiles"],
} as const;

/** A folder that comes with the server. It may be missing: the clone's console and docs have to be built first. */
export function shippedFolder(name: keyof typeof PLACES): string {
  const places = PLACES[name].map((place) => join(packageFolder(), place));
  return places.find((place) => existsSync(place)) ?? places.at(-1) ?? "";
}

/** Found by its package.json, because the build moves this file to another depth. */
function packageFolder(): string {
  let folder = import.meta.dirname;
  while (!existsSync(join(folder, "package.json"))) folder = dirname(folder);
  return folder;
}
