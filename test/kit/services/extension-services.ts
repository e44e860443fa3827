/** For the project `extensions`: one Docker engine and two "hosts" with sshd, started once for all files. */
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestProject } from "vitest/node";
import { whyNoServices } from "./debian-programs.ts";
import { startDocker } from "./docker.ts";
import { importHostImage } from "./host-image.ts";
import { startSshServer } from "./ssh-server.ts";

export interface ExtensionServices {
  readonly docker: { readonly host: string; readonly env: Readonly<Record<string, string>> };
  /** Placements of two hosts, with base folders of their own. */
  readonly hosts: readonly [Readonly<Record<string, string>>, Readonly<Record<string, string>>];
  /** With bash, Python and JavaScript of this machine, for compose projects that mount /usr. */
  readonly image: string;
}

declare module "vitest" {
  interface ProvidedContext {
    extensionServices: ExtensionServices | { readonly missing: string };
  }
}

export default async function setUp(project: TestProject): Promise<() => Promise<void>> {
  const missing = whyNoServices();
  if (missing !== undefined) {
    project.provide("extensionServices", { missing });
    return async () => {};
  }
  const docker = await startDocker();
  const folder = await mkdtemp(join(tmpdir(), "sbx-hosts-"));
  const { DOCKER_HOST: host, ...environment } = docker.env;
  const servers = await Promise.all([startSshServer(environment), startSshServer(environment)]);
  const [first, second] = servers.map((server, at) => ({
    ...server.placement,
    base_dir: join(folder, `host-${at + 1}`),
    docker_host: host,
  }));
  for (const place of [first, second]) await mkdir(place?.base_dir ?? folder);
  const image = await importHostImage(docker);
  if (first === undefined || second === undefined) throw new Error("There are two hosts.");
  project.provide("extensionServices", { docker: { host, env: docker.env }, hosts: [first, second], image });
  return async () => {
    await Promise.all(servers.map((server) => server.stop()));
    await docker.stop();
    await rm(folder, { recursive: true, force: true });
  };
}
