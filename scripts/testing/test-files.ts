import { existsSync, globSync, readFileSync } from "node:fs";
import { basename, dirname, join, normalize } from "node:path";
import { SUITE_OF_SUFFIX, TEST_FOLDERS } from "./suffixes.ts";

/** Whole servers, other programs, processes: a unit test does not load them, not even through a helper. */
const NOT_FOR_UNIT_TESTS: readonly RegExp[] = [
  /^test\/kit\/(server|services|store-servers)\//,
  /^packages\/server\/src\/main\/index\.ts$/,
  /^packages\/client\/src\/testing\//,
  /^@sandboxer\/(server|client\/testing)$/,
  /^node:(child_process|cluster|worker_threads)$/,
];

/** Folders of tests about the whole product, not about a folder of `src`. */
const WITHOUT_SOURCE: readonly RegExp[] = [/^packages\/server\/test\/system\//, /^packages\/console\/test\/pictures\//];

/** Every file of tests in a repository, wherever it is, by its path from the root. */
export function testFiles(root: string): string[] {
  const skipped = new Set(["node_modules", "dist", "build", ".git"]);
  const exclude = (path: string): boolean => skipped.has(basename(path));
  return globSync("**/*.{test,spec}.{ts,tsx,mts,js,mjs}", { cwd: root, exclude }).toSorted();
}

/** Problems with the places and names of test files. */
export function problemsWithNames(root: string, paths: readonly string[]): string[] {
  const found = new Set(globSync(`${TEST_FOLDERS}/**/*.test.ts`, { cwd: root }));
  return paths.flatMap((path) => problemWithName(root, path, found) ?? []);
}

function problemWithName(root: string, path: string, found: ReadonlySet<string>): string | undefined {
  if (!found.has(path)) return `${path}: no suite looks there. Move it into ${TEST_FOLDERS}, and end it in .test.ts.`;
  const suffix = suffixOf(path);
  if (suffix === undefined || suffix in SUITE_OF_SUFFIX) return problemWithFolder(root, path);
  return `${path}: no suite is called "${suffix}". Use a suffix of scripts/testing/suffixes.ts.`;
}

/** The imports of the kit from a package's own tests, which are not allowed. */
export function problemsWithKit(root: string): string[] {
  return globSync("test/kit/**/*.ts", { cwd: root }).flatMap((path) =>
    importsOf(readFileSync(join(root, path), "utf8"))
      .map((specifier) => normalize(join(dirname(path), specifier)))
      .filter((target) => /^packages\/[^/]+\/test\//.test(target))
      .map((target) => `${path} imports ${target}. Move that into test/kit.`),
  );
}

/** The import that a unit test may not have. Undefined: there is none, or the file has a suffix of another suite. */
export function problemWithImports(root: string, path: string): string | undefined {
  if (suffixOf(path) !== undefined) return undefined;
  const heavy = heavyImport(root, path, new Set());
  return heavy === undefined
    ? undefined
    : `${path}: ${heavy}. Call it ${path.replace(/\.test\.ts$/, ".server.test.ts")}.`;
}

/**
 * A wait for a fixed time. Tests wait for something with `eventually`, and let time pass in which nothing must happen with
 * `meanwhile`; only in a browser there is neither.
 */
export function problemWithSleeps(root: string, path: string): string | undefined {
  const sleep = /\((\w+)\) => setTimeout\(\1, [^0]|setTimeout as \w+ \} from/;
  const found = suffixOf(path) === "browser" ? null : sleep.exec(readFileSync(join(root, path), "utf8"));
  return found === null ? undefined : `${path}: ${found[0]} …: use eventually or meanwhile of test/kit.`;
}

/** The last word before `.test.ts`. */
function suffixOf(path: string): string | undefined {
  return basename(path, ".test.ts").split(".").slice(1).at(-1);
}

/** A folder of tests is a folder of `src`, or one inside such a folder. */
function problemWithFolder(root: string, path: string): string | undefined {
  if (!path.startsWith("packages/") || WITHOUT_SOURCE.some((pattern) => pattern.test(path))) return undefined;
  const [, name = "", , ...rest] = dirname(path).split("/");
  const mirrored = (folders: readonly string[]): boolean => {
    const source = join(root, "packages", name, "src", ...folders);
    return existsSync(source) || existsSync(`${source}.ts`);
  };
  if (mirrored(rest) || (rest.length > 1 && mirrored(rest.slice(0, -1)))) return undefined;
  return `${path}: packages/${name}/src has no ${rest.join("/")}. Folders of tests mirror those of src.`;
}

function heavyImport(root: string, path: string, seen: Set<string>): string | undefined {
  if (seen.has(path)) return undefined;
  seen.add(path);
  for (const specifier of importsOf(readFileSync(join(root, path), "utf8"))) {
    const target = specifier.startsWith(".") ? normalize(join(dirname(path), specifier)) : specifier;
    if (NOT_FOR_UNIT_TESTS.some((pattern) => pattern.test(target))) return `${path} imports ${target}`;
    const isHelper = /^(test|.*\/test)\//.test(target) && specifier.startsWith(".");
    const heavy = isHelper ? heavyImport(root, target, seen) : undefined;
    if (heavy !== undefined) return heavy;
  }
  return undefined;
}

/** Types do not count: they are not loaded. */
function importsOf(source: string): string[] {
  const statements = /^(?:import|export)\s+(?!type\b)(?:[^;"']*?\sfrom\s+)?"([^"]+)"/gm;
  return [...source.matchAll(statements), ...source.matchAll(/\bimport\(\s*"([^"]+)"/g)].map(([, name = ""]) => name);
}
