import { execFile } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll } from "vitest";
import type { SandboxBackend } from "../../../../src/backends/backend.ts";
import type { OpenDockerOptions } from "../../../../src/backends/docker/index.ts";
import { Label } from "../../../../src/backends/docker/labels.ts";
import { askEngine } from "../../../../../../test/kit/services/ask-engine.ts";
import { debianPrograms } from "../../../../../../test/kit/services/debian-programs.ts";
import type { DockerService } from "./docker-service.ts";
import { openDocker } from "./open-docker.ts";

const execFileAsync = promisify(execFile);

/** One installation for the tests of a file: its folder, its backends, and a view of the engine from outside. */
export class DockerLab {
  readonly #service: () => DockerService;
  readonly #backends: SandboxBackend[] = [];
  readonly #folders: string[] = [];
  #directory = "";

  /** A function if the engine is started later. */
  constructor(service: DockerService | (() => DockerService)) {
    this.#service = typeof service === "function" ? service : () => service;
    beforeAll(async () => {
      this.#directory = await this.folder();
    });
    afterAll(async () => {
      for (const backend of this.#backends) await backend.close();
      const left = await this.containers();
      if (left.length > 0) await this.docker("rm", "-f", "-v", ...left);
      for (const folder of this.#folders) await rm(folder, { recursive: true, force: true });
    });
  }

  get service(): DockerService {
    return this.#service();
  }

  /** The folder of the installation. */
  get directory(): string {
    return this.#directory;
  }

  async open(overrides: Partial<OpenDockerOptions> = {}): Promise<SandboxBackend> {
    const { backend } = await openDocker(this.service, this.#directory, overrides);
    this.#backends.push(backend);
    return backend;
  }

  async folder(): Promise<string> {
    const folder = await mkdtemp(join(tmpdir(), "sbx-docker-lab-"));
    this.#folders.push(folder);
    return folder;
  }

  async docker(...args: readonly string[]): Promise<string> {
    const { stdout } = await execFileAsync(join(debianPrograms.bin, "docker"), args, {
      env: { ...process.env, ...this.service.env },
    });
    return stdout.trim();
  }

  /** The ids of the installation's containers, newest first; `KEY=VALUE` are further filters of `docker ps`. */
  async containers(...filters: readonly string[]): Promise<string[]> {
    const all: Record<string, string[]> = {};
    for (const filter of [`label=${Label.owner}=${this.#directory}`, ...filters]) {
      const at = filter.indexOf("=");
      (all[filter.slice(0, at)] ??= []).push(filter.slice(at + 1));
    }
    return (await askEngine<{ Id: string }[]>(this.service.host, "/containers/json", all)).map(({ Id }) => Id);
  }

  containersOf(key: string): Promise<string[]> {
    return this.containers(`label=${Label.key}=${key}`);
  }

  /** The ids of images from snapshots of the installation that the engine has now. */
  async snapshotImages(): Promise<string[]> {
    const filters = { label: [`${Label.owner}=${this.#directory}`, Label.snapshot] };
    return (await askEngine<{ Id: string }[]>(this.service.host, "/images/json", filters)).map(({ Id }) => Id);
  }

  async state(container: string): Promise<string> {
    const path = `/containers/${container}/json`;
    return (await askEngine<{ State: { Status: string } }>(this.service.host, path)).State.Status;
  }
}

export function lines(text: string): string[] {
  return text.split("\n").filter((line) => line !== "");
}
