import { execFile } from "node:child_process";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { packageOf } from "./bundle.ts";
import { type PublicPackage, ROOT } from "./public-package.ts";

const RELATIVE = /(?<=\b(?:from|import) ?\(?")(\.[^"]+)\.ts(?=")/g;
const NAMED = /(?<!")\b(?:from|import) ?\(?"([^."\n][^"\n]*)"/g;

/** The types of all packages, compiled once because they know each other. */
export class Declarations implements AsyncDisposable {
  readonly #folder: string;

  private constructor(folder: string) {
    this.#folder = folder;
  }

  static async compile(): Promise<Declarations> {
    const folder = await mkdtemp(join(tmpdir(), "sandboxer-declarations-"));
    const compiler = join(ROOT, "node_modules/typescript/bin/tsc");
    const project = join(ROOT, "tsconfig.declarations.json");
    const argv = [compiler, "-p", project, "--outDir", folder, "--checkers", "1"];
    const { stdout } = await promisify(execFile)(process.execPath, argv).catch((error: { stdout: string }) => error);
    if (stdout !== "") throw new Error(stdout);
    return new Declarations(folder);
  }

  /** Writes the declarations that the exports of a package lead to. Returns the names of the packages that the types come from. */
  async write({ folder, manifest }: PublicPackage, into: string): Promise<ReadonlySet<string>> {
    const source = join(this.#folder, folder, "src");
    const packages = new Set<string>();
    const waiting = Object.values(manifest.exports ?? {}).map((file) => file.slice("./src/".length));
    const seen = new Set(waiting);
    for (let file = waiting.pop(); file !== undefined; file = waiting.pop()) {
      const name = file.replace(/\.ts$/, ".d.ts");
      const text = await readFile(join(source, name), "utf8");
      for (const [, path = ""] of text.matchAll(RELATIVE)) {
        const found = `${join(dirname(file), path)}.ts`;
        if (!seen.has(found)) waiting.push(found);
        seen.add(found);
      }
      for (const [, specifier = ""] of text.matchAll(NAMED))
        for (const each of packageOf(specifier)) packages.add(each);
      await mkdir(dirname(join(into, name)), { recursive: true });
      await writeFile(join(into, name), text.replaceAll(RELATIVE, "$1.js"));
    }
    return packages;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await rm(this.#folder, { recursive: true });
  }
}
