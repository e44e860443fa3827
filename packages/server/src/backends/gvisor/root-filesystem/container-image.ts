import { execFile, spawn } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { SandboxerError } from "@sandboxer/protocol";
import type { RootFilesystem } from "./root-filesystem.ts";
import { unpackOnce } from "./tar.ts";

const execFileAsync = promisify(execFile);
const LOCAL_TIMEOUT_MS = 30_000;

/** Whether the local Docker engine has an image. False also without Docker. */
export async function isInDocker(name: string): Promise<boolean> {
  if (name.startsWith("-")) return false;
  return execFileAsync("docker", ["image", "inspect", "--format", "{{.Id}}", name], { timeout: LOCAL_TIMEOUT_MS }).then(
    () => true,
    () => false,
  );
}

/** `docker:NAME`: an image of the local Docker engine, exported once under its id. */
export async function dockerRootFilesystem(
  image: string,
  name: string,
  cacheDirectory: string,
): Promise<RootFilesystem> {
  refuseOption(image, name);
  const inspected = await tool("docker", ["image", "inspect", "--format", "{{.Id}}", name], image);
  const digest = inspected.trim().replace(/^sha256:/, "");
  if (!/^[0-9a-f]{64}$/.test(digest)) throw new SandboxerError("bad_request", `The image ${image} has no id.`);
  const path = join(cacheDirectory, `docker-${digest.slice(0, 32)}`);
  await unpackOnce(path, image, async (into) => {
    const container = (await tool("docker", ["create", name, "/bin/true"], image)).trim();
    try {
      await exportInto(container, into);
    } finally {
      await tool("docker", ["rm", "--force", container], image).catch(() => {});
    }
  });
  return { image, path, mounts: [], identity: { kind: "container image", digest, parts: { id: digest } } };
}

async function exportInto(container: string, into: string): Promise<void> {
  const source = spawn("docker", ["export", container], { stdio: ["ignore", "pipe", "inherit"] });
  const sink = spawn("tar", ["-x", "-p", "--numeric-owner", "-C", into], { stdio: [source.stdout, "ignore", "pipe"] });
  const ended = (child: typeof source | typeof sink): Promise<number | null> =>
    new Promise((resolve, reject) => child.once("error", reject).once("close", resolve));
  const [exported, unpacked] = await Promise.all([ended(source), ended(sink)]);
  if (exported !== 0 || unpacked !== 0) throw new Error(`docker export ended with ${exported}, tar with ${unpacked}`);
}

async function tool(name: string, args: string[], image: string): Promise<string> {
  try {
    return (await execFileAsync(name, args, { timeout: LOCAL_TIMEOUT_MS })).stdout;
  } catch (error) {
    const failure = error as NodeJS.ErrnoException & { stderr?: string };
    if (failure.code === "ENOENT") {
      throw new SandboxerError(
        "not_supported",
        `The image ${image} needs ${name}, which is not installed on the server.`,
        {
          hint: "Install it (apt-get install docker.io), or use an image of a registry, or a dir: or tar: image.",
        },
      );
    }
    const reason = (failure.stderr ?? failure.message).trim().split("\n").at(-1) ?? "";
    throw new SandboxerError("bad_request", `The image ${image} cannot be used: ${reason}`);
  }
}

function refuseOption(image: string, name: string): void {
  if (name === "" || name.startsWith("-"))
    throw new SandboxerError("bad_request", `The image name ${image} is not valid.`);
}
