import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import type { CleanUp } from "../clean-up.ts";
import { readTraits } from "../../packages/server/src/backends/gvisor/engine.ts";
import { removeCgroups } from "../../packages/server/src/backends/gvisor/cgroups.ts";
import type { EngineFacts } from "../server/server-process.ts";
import { writeBundle, type Program, type Spec } from "./bundle.ts";
import { RawContainer } from "./raw-container.ts";

/** runsc without a server: the same engine, the same flags, the same configuration of the sandbox. */
export class RawEngine {
  readonly #engine: EngineFacts;
  readonly #spec: Spec;
  readonly #scratch: string;
  readonly #cleanUp: CleanUp;
  readonly #cgroupPath = `/sandboxer-bench-${process.pid}`;

  constructor(engine: EngineFacts, spec: Spec, scratch: string, cleanUp: CleanUp) {
    this.#engine = engine;
    this.#spec = spec;
    this.#scratch = scratch;
    this.#cleanUp = cleanUp;
    if (!this.#usesCgroups) return;
    cleanUp.add(async () => {
      await removeCgroups(this.#cgroupPath);
    });
  }

  async open(): Promise<void> {
    for (const folder of ["state", "filestore"]) await mkdir(join(this.#scratch, folder), { recursive: true });
  }

  get flags(): string[] {
    return [
      `--root=${join(this.#scratch, "state")}`,
      `--platform=${this.#engine.platform}`,
      "--network=none",
      `--overlay2=root:dir=${join(this.#scratch, "filestore")}`,
      ...(this.#usesCgroups ? [] : ["--ignore-cgroups"]),
    ];
  }

  /** The agent, as the server starts it. */
  get agentProgram(): Program {
    return { args: this.#spec.process.args, asUser: false };
  }

  /** `runsc run`. The time until it is called is not part of any measurement. */
  async prepare(program: Program): Promise<() => Promise<RawContainer>> {
    const { id, directory } = await this.#newContainer(program);
    return () => this.#launch(id, directory, ["run"]);
  }

  async run(program: Program): Promise<RawContainer> {
    return (await this.prepare(program))();
  }

  async prepareRestore(program: Program, imageDirectory: string): Promise<() => Promise<RawContainer>> {
    const { id, directory } = await this.#newContainer(program);
    // As early as the engine can, like ours.
    const early = (await readTraits(this.#engine.path)).loadsInBackground ? ["--background"] : [];
    return () => this.#launch(id, directory, ["restore", ...early, `--image-path=${imageDirectory}`]);
  }

  /** Runs a command to its end. */
  async command(args: readonly string[]): Promise<void> {
    const child = spawn(this.#engine.path, [...this.flags, ...args], { stdio: ["ignore", "ignore", "pipe"] });
    let words = "";
    child.stderr.on("data", (chunk: Buffer) => (words += chunk.toString("utf8")));
    const code = await new Promise<number | null>((resolve) => child.once("close", resolve));
    if (code !== 0) throw new Error(`runsc ${args[0] ?? ""} failed (${code}): ${words.slice(0, 500)}`);
  }

  get #usesCgroups(): boolean {
    return this.#spec.linux.cgroupsPath !== undefined;
  }

  async #newContainer(program: Program): Promise<{ id: string; directory: string }> {
    const id = `raw-${randomBytes(8).toString("hex")}`;
    const directory = join(this.#scratch, "bundles", id);
    await writeBundle(directory, this.#spec, program, this.#usesCgroups ? `${this.#cgroupPath}/${id}` : undefined);
    return { id, directory };
  }

  async #launch(id: string, directory: string, command: readonly string[]): Promise<RawContainer> {
    const args = [...this.flags, ...command, `--bundle=${directory}`, id];
    const container = await RawContainer.start(this.#engine.path, args, id, directory);
    container.end = this.#cleanUp.add(async () => {
      await container.kill();
      await this.command(["delete", "--force", id]).catch(() => {});
      await rm(directory, { recursive: true, force: true });
    });
    return container;
  }
}
