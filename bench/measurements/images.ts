import { execFile } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdir, symlink, writeFile, copyFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { findProgram } from "../../packages/server/src/setup/files.ts";
import { debianPrograms } from "../../test/kit/services/debian-programs.ts";
import { startDockerRegistry } from "../../test/kit/services/docker-registry.ts";
import { prepareGvisorTools, withGvisorTools } from "../../test/kit/services/gvisor-tools.ts";
import { byEffort, type Lab } from "../lab.ts";
import { reason } from "../peers/contest.ts";
import { startBenchDocker } from "../peers/start-docker.ts";
import type { Contest, Findings, Skipped } from "../result.ts";
import { measurePair, timed } from "../rounds.ts";
import { callServer, createSandbox, destroySandbox, execIn } from "../server/http-call.ts";
import { startServer, type ServerProcess } from "../server/server-process.ts";
import { NOTHING_AHEAD } from "../server/warm-server.ts";

const run = promisify(execFile);
const HELLO = ["/bin/sh", "-c", "echo hello"];
const LARGE_FILES = 40;
const SMALL_FILES = 4000;
const MIB = 1024 * 1024;

/** Pulling and starting an image, beside Docker; creating from one, beside the host's files. */
export async function measureImages(lab: Lab): Promise<Partial<Findings>> {
  const skipped: Skipped[] = [];
  const contests: Contest[] = [];
  try {
    await prepareGvisorTools(lab.progress);
    lab.progress("Making an image of 50 MB");
    const registry = await startDockerRegistry();
    lab.cleanUp.add(() => registry.stop());
    const image = `${registry.host}/bench/image:1`;
    await pushImage(lab, image);
    const places = { store: join(lab.scratch, "images-store"), dataHome: join(lab.scratch, "images-data") };
    const flags = [`--runsc=${lab.engine.path}`, `--insecure-registry=${registry.host}`, NOTHING_AHEAD];
    const server = await startServer({ ...places, flags }, lab.cleanUp);
    try {
      contests.push(...(await pullAndStart(lab, server, image, skipped)));
      contests.push(await createFrom(lab, server, image));
    } finally {
      await removeImage(server, image);
      await server.stop();
    }
  } catch (error) {
    skipped.push({ what: "Container images", why: reason(error) });
  }
  return { contests, skipped };
}

async function pullAndStart(lab: Lab, server: ServerProcess, image: string, skipped: Skipped[]): Promise<Contest[]> {
  const docker = await startBenchDocker(lab, []).catch(reason);
  if (typeof docker === "string") {
    skipped.push({ what: "Docker: pull and first start of an image", why: docker });
    return [];
  }
  lab.progress("Pull and first start of an image");
  const command = (...args: string[]): Promise<unknown> =>
    run(join(debianPrograms.bin, "docker"), ["--host", docker.address, ...args]);
  const { ours, raw } = await measurePair(
    byEffort(lab, { full: 7, quick: 3, smoke: 1 }),
    async () => {
      const elapsedMs = await timed(() => hello(server, image));
      await removeImage(server, image);
      return elapsedMs;
    },
    async () => {
      const elapsedMs = await timed(async () => {
        await command("pull", "--quiet", image);
        await command("run", "--rm", "--network=none", image, ...HELLO);
      });
      await command("image", "rm", image);
      return elapsedMs;
    },
  );
  return [
    {
      id: "image-pull",
      title: "Pull and first start of a 50 MB image",
      unit: "ms",
      sides: [
        { name: "sandboxer", what: "POST /v1/sandboxes with an image that is not here, then exec", summary: ours },
        { name: "Docker (runc)", what: "docker pull, then docker run", summary: raw },
      ],
    },
  ];
}

async function createFrom(lab: Lab, server: ServerProcess, image: string): Promise<Contest> {
  lab.progress("Create with an image, and with the host's files");
  const { ours, raw } = await measurePair(
    byEffort(lab, { full: 15, quick: 5, smoke: 1 }),
    () => timed(() => hello(server, image)),
    () => timed(() => hello(server, "host")),
  );
  return {
    id: "image-create",
    title: "Create and first output, image against host",
    unit: "ms",
    sides: [
      { name: "sandboxer", what: "with an image that is here", summary: ours },
      { name: "sandboxer (host)", what: "with `host`", summary: raw },
    ],
  };
}

/** Removing the sandbox is part of it: nothing of one round may run in the next. */
async function hello(server: ServerProcess, image: string): Promise<void> {
  const id = await createSandbox(server, { image });
  const said = await execIn(server, id, HELLO);
  await destroySandbox(server, id);
  if (said !== "hello\n") throw new Error(`It said ${JSON.stringify(said)}.`);
}

/** A moment after its last sandbox it is not in use. */
async function removeImage(server: ServerProcess, image: string): Promise<void> {
  const path = `/v1/images/${encodeURIComponent(image)}`;
  const deadlineMs = performance.now() + 10_000;
  for (;;) {
    const failed = await callServer(server, "DELETE", path).then(
      () => undefined,
      (error: unknown) => String(error),
    );
    if (failed === undefined || failed.includes("image_not_found")) return;
    if (performance.now() > deadlineMs) throw new Error(failed);
    await sleep(20);
  }
}

/** Much that does not compress, and many small files that do, as in images of programming languages. */
async function pushImage(lab: Lab, image: string): Promise<void> {
  const path = withGvisorTools(process.env["PATH"] ?? "");
  const tool = (name: string, ...args: string[]): Promise<unknown> =>
    run(name, args, { env: { ...process.env, PATH: path, HOME: lab.scratch } });
  const busybox = findProgram("busybox", path);
  if (busybox === undefined) throw new Error("There is no busybox.");
  const [large, small] = [join(lab.scratch, "image-large"), join(lab.scratch, "image-small")];
  for (const folder of ["bin", "etc", "data"]) await mkdir(join(large, folder), { recursive: true });
  await copyFile(busybox, join(large, "bin/busybox"));
  await symlink("busybox", join(large, "bin/sh"));
  for (let index = 0; index < LARGE_FILES; index++) await writeFile(join(large, "data", `${index}`), randomBytes(MIB));
  for (let index = 0; index < SMALL_FILES; index++) {
    const folder = join(small, `${index % 100}`);
    await mkdir(folder, { recursive: true });
    await writeFile(join(folder, `${index}.py`), randomBytes(2048).toString("hex"));
  }
  const layout = join(lab.scratch, "image-layout");
  await tool("umoci", "init", "--layout", layout);
  await tool("umoci", "new", "--image", `${layout}:latest`);
  await tool("umoci", "insert", "--image", `${layout}:latest`, large, "/");
  await tool("umoci", "insert", "--image", `${layout}:latest`, small, "/lib");
  await tool(
    "skopeo",
    "copy",
    "--insecure-policy",
    "--dest-tls-verify=false",
    `oci:${layout}:latest`,
    `docker://${image}`,
  );
}
