import { copyFile, mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { debianPrograms } from "../../test/kit/services/debian-programs.ts";
import { startDocker } from "../../test/kit/services/docker.ts";
import { buildServerImage } from "../../test/kit/services/server-image.ts";
import { bootstrap } from "../bootstrap.mjs";
import { packPackages } from "../packages/pack-packages.ts";

export const SERVER_IMAGE = { repository: "localhost/sandboxer-server", tag: "test" };
/** Holds the namespaces of a Pod; another one would have to come from a registry. */
export const PAUSE_IMAGE = "localhost/pause:1";

/** Builds the image of deploy/Dockerfile from this clone, and writes it and the other one that a node needs into an archive. */
export async function saveImages(archive: string): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), "sandboxer-kubernetes-image-"));
  const engine = await startDocker();
  try {
    const pause = join(folder, "pause");
    await mkdir(pause);
    await copyFile(join(debianPrograms.bin, "busybox"), join(pause, "busybox"));
    await engine.importImage("pause", pause);
    const forever = ["--entrypoint", "/busybox", "pause", "sleep", "2147483647"];
    await engine.docker("create", "--name", "pause", "--network", "none", ...forever);
    await engine.docker("commit", "pause", PAUSE_IMAGE);

    const packages = join(folder, "packages");
    await bootstrap();
    await packPackages(packages);
    const server = `${SERVER_IMAGE.repository}:${SERVER_IMAGE.tag}`;
    await engine.docker("tag", await buildServerImage(engine, packages), server);
    await engine.docker("save", "--output", archive, server, PAUSE_IMAGE);
  } finally {
    await engine.stop();
    await rm(folder, { recursive: true, force: true });
  }
}
