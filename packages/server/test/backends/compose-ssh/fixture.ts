import { randomUUID } from "node:crypto";
import { chmod, mkdir, mkdtemp, realpath, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, inject, it } from "vitest";
import type { AcquireRequest, SandboxSpec } from "../../../src/backends/backend.ts";
import { ComposeSshExtension } from "../../../src/backends/compose-ssh/compose-ssh-extension.ts";
import { ExtensionBackend } from "../../../src/backends/extension/extension-backend.ts";
import type { ExtensionServices } from "../../../../../test/kit/services/extension-services.ts";
import { HOST_IMAGE_PATH, hostImageVolumes } from "../../../../../test/kit/services/host-image.ts";

/** A suite on real services; without them it is skipped with the reason. */
export function describeServices(name: string, define: (services: ExtensionServices) => void): void {
  const provided = inject("extensionServices");
  describe(`${name} (on Docker and sshd)`, () => {
    for (const services of "missing" in provided ? [] : [provided]) define(services);
    for (const reason of "missing" in provided ? [provided.missing] : []) {
      // oxlint-disable-next-line vitest/expect-expect -- It is only there to be skipped.
      it("has Docker and sshd", (context) => {
        console.log(`skipped: ${reason}`);
        context.skip(reason);
      });
    }
  });
}

/** Folders and backends of one file, removed and closed after it. */
export class Lab {
  readonly #services: ExtensionServices;
  readonly #folders: string[] = [];
  readonly #backends: ExtensionBackend[] = [];

  constructor(services: ExtensionServices) {
    this.#services = services;
    afterAll(async () => {
      for (const backend of this.#backends) await backend.close();
      for (const folder of this.#folders) await rm(folder, { recursive: true, force: true });
    });
  }

  async folder(): Promise<string> {
    const folder = await realpath(await mkdtemp(join(tmpdir(), "sbx-lab-")));
    this.#folders.push(folder);
    return folder;
  }

  /** A compose project in a folder of this machine. */
  async repository(files: Readonly<Record<string, string>> = {}): Promise<string> {
    const folder = join(await this.folder(), "repo");
    await mkdir(folder);
    // Programs inside are not root, and write here.
    await chmod(folder, 0o777);
    for (const [name, content] of Object.entries({ "compose.yaml": this.composeFile(), ...files })) {
      await writeFile(join(folder, name), content);
      await chmod(join(folder, name), 0o666);
    }
    return folder;
  }

  composeFile(service: Readonly<Record<string, unknown>> = {}): string {
    const app = {
      image: this.#services.image,
      pull_policy: "never",
      user: "1000:1000",
      command: ["sleep", "infinity"],
      stop_signal: "SIGKILL",
      working_dir: "/workspace",
      environment: { PATH: HOST_IMAGE_PATH },
      volumes: [".:/workspace", ...hostImageVolumes()],
      ...service,
    };
    // JSON is YAML.
    return JSON.stringify({ services: { app } });
  }

  /** With a folder of this machine for its connections. */
  backend(temporaryDirectory = tmpdir()): ExtensionBackend {
    const extension = new ComposeSshExtension({ repositoryFolders: [tmpdir()], temporaryDirectory });
    const backend = new ExtensionBackend(extension);
    this.#backends.push(backend);
    return backend;
  }
}

export function requestFor(
  repo: string,
  placement: Readonly<Record<string, string>>,
  spec: Partial<SandboxSpec> = {},
): AcquireRequest {
  const full: SandboxSpec = { env: {}, resources: {}, network: "none", inputs: { repo }, placement, ...spec };
  return { sandboxId: randomUUID(), spec: full };
}
