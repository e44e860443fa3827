import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { promisify } from "node:util";
import { onTestFinished } from "vitest";
import { bootstrap } from "../../../../scripts/bootstrap.mjs";
import type { BuildOptions } from "../../../../scripts/packages/build-packages.ts";
import { packPackages, type PackedPackage } from "../../../../scripts/packages/pack-packages.ts";
import { type LocalRegistry, startLocalRegistry } from "../../../../test/kit/services/local-registry.ts";

/** The Nodes for programs with the SDK, and for the command and the server. `npm run test:oldest-node` names older ones. */
const { SANDBOXER_TEST_SDK_NODE: SDK_NODE = process.execPath, SANDBOXER_TEST_CLI_NODE: CLI_NODE = process.execPath } =
  process.env;

/** For building, packing and installing on a busy machine. */
export const PATIENCE_MS = 600_000;

/** A folder outside of the clone, with an npm that finds the packed packages as if they were published. */
export class Outside {
  readonly folder: string;
  readonly packages: readonly PackedPackage[];
  readonly #registry: LocalRegistry;

  private constructor(folder: string, packages: readonly PackedPackage[], registry: LocalRegistry) {
    this.folder = folder;
    this.packages = packages;
    this.#registry = registry;
  }

  static async open(options?: BuildOptions): Promise<Outside> {
    // The console goes into the server's package.
    await bootstrap();
    const folder = await mkdtemp(join(tmpdir(), "sandboxer-outside-"));
    try {
      const packages = await packPackages(join(folder, "packed"), options);
      return new Outside(folder, packages, await startLocalRegistry(packages));
    } catch (error) {
      await rm(folder, { recursive: true, force: true });
      throw error;
    }
  }

  async close(): Promise<void> {
    this.#registry.close();
    await rm(this.folder, { recursive: true, force: true, maxRetries: 5 });
  }

  async newFolder(name: string): Promise<string> {
    const folder = join(this.folder, name);
    await mkdir(folder, { recursive: true });
    return folder;
  }

  /** Runs a program to its end and returns its output. Rejects with the output if it fails. */
  async run(folder: string, argv: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<string> {
    const [program = "", ...rest] = argv;
    const options = { cwd: folder, env: { ...this.#env, ...env } };
    const { stdout } = await promisify(execFile)(program === "node" ? SDK_NODE : program, rest, options);
    return stdout;
  }

  /** Starts a server with its data in `folder`, until the end of the test. Returns its first output. */
  async serve(
    folder: string,
    command: readonly string[],
    flags: readonly string[],
  ): Promise<{ readonly url: string; readonly banner: string }> {
    const argv = [...command, "serve", "--port", "0", "--data-directory", join(folder, "data"), ...flags];
    const banner = await this.start(folder, argv, /^Try .*\n/m);
    return { banner, url: /^Listening on +(\S+)/m.exec(banner)?.[1] ?? "" };
  }

  /** Starts a program that runs until the end of the test. Returns its output up to the ready line. */
  async start(folder: string, [program = "", ...argv]: readonly string[], ready: RegExp): Promise<string> {
    const child = spawn(program === "node" ? CLI_NODE : program, argv, {
      cwd: folder,
      env: this.#env,
      stdio: ["pipe", "pipe", "pipe"],
    });
    // Not `exit`: npx ends before the server that it started.
    const closed = once(child, "close");
    onTestFinished(async () => {
      child.kill("SIGTERM");
      await closed;
    });
    const printed = { stdout: "", stderr: "" };
    child.stderr.on("data", (text: Buffer) => (printed.stderr += text.toString()));
    return await new Promise((resolve, reject) => {
      child.stdout.on("data", (text: Buffer) => {
        printed.stdout += text.toString();
        if (ready.test(printed.stdout)) resolve(printed.stdout);
      });
      child.once("close", () => reject(new Error(`${program} ended before it was ready:\n${printed.stderr}`)));
    });
  }

  /** Nothing of the clone or of the user who runs the test, except the programs of this machine. */
  get #env(): Record<string, string> {
    const path = (process.env["PATH"] ?? "").split(delimiter).filter((entry) => !entry.includes("node_modules"));
    return {
      PATH: [dirname(CLI_NODE), ...path].join(delimiter),
      HOME: this.folder,
      npm_config_userconfig: join(this.folder, "no-npmrc"),
      npm_config_registry: this.#registry.url,
      npm_config_cache: join(this.folder, "npm-cache"),
      npm_config_audit: "false",
      npm_config_fund: "false",
      npm_config_update_notifier: "false",
      npm_config_loglevel: "error",
    };
  }
}
