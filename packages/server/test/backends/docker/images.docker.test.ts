import { execFile } from "node:child_process";
import { createReadStream } from "node:fs";
import { copyFile, mkdir, readdir, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { beforeAll, expect, onTestFinished, test } from "vitest";
import { newRequest } from "../contract/context.ts";
import { errorCode, run } from "../contract/programs.ts";
import { debianPrograms } from "../../../../../test/kit/services/debian-programs.ts";
import { startDockerRegistry } from "../../../../../test/kit/services/docker-registry.ts";
import { withGvisorTools } from "../../../../../test/kit/services/gvisor-tools.ts";
import { findProgram } from "../../../src/setup/files.ts";
import { registryLibrary } from "../../images/support/registry-library.ts";
import { describeDocker } from "./support/describe-docker.ts";
import { DockerLab } from "./support/docker-lab.ts";

const execFileAsync = promisify(execFile);
const DOCKERFILE = `FROM scratch
ADD small.tar /
ENV GREETING="hello from docker"
RUN ["/bin/sh", "-c", "echo kept > /kept; echo gone > /gone"]
RUN ["/bin/busybox", "rm", "/gone"]
WORKDIR /srv/app
USER 1234:55
CMD ["sh", "-c", "true"]
`;
const NO_MOUNTS = { inputs: { mounts: "" }, env: { PATH: "/bin" } };

describeDocker("images", (service) => {
  const lab = new DockerLab(service);
  let folder: string;
  beforeAll(async () => {
    folder = await lab.folder();
    const root = join(folder, "root");
    await mkdir(join(root, "bin"), { recursive: true });
    await copyFile(join(debianPrograms.bin, "busybox"), join(root, "bin/busybox"));
    for (const name of ["sh", "cat", "id"]) await symlink("busybox", join(root, "bin", name));
    await mkdir(join(folder, "images"));
    await execFileAsync("tar", ["-C", root, "-cf", join(folder, "images", "small.tar"), "."]);
    await copyFile(join(folder, "images", "small.tar"), join(folder, "elsewhere.tar"));
  });

  test("an archive is imported once, and its sandboxes need no files of this machine", async () => {
    const backend = await lab.open({ imageDirectories: [join(folder, "images")] });
    const image = `tar:${join(folder, "images", "small.tar")}`;
    const [first, second] = await Promise.all([
      backend.acquire(newRequest({ image, ...NO_MOUNTS })),
      backend.acquire(newRequest({ image, ...NO_MOUNTS })),
    ]);
    expect((await run(first, ["sh", "-c", "id -u; pwd; cat /etc/hostname"])).stdout).toMatch(
      /^1000\n\/workspace\nsandbox-/,
    );
    await Promise.all([first.destroy(), second.destroy()]);
    expect((await lab.docker("images", "-q", "sandboxer-import")).split("\n")).toHaveLength(1);
  });

  test("an archive in another folder is refused, unless the operator configured it", async () => {
    const image = `tar:${join(folder, "elsewhere.tar")}`;
    const backend = await lab.open({ imageDirectories: [join(folder, "images")] });
    expect(await errorCode(backend.acquire(newRequest({ image, ...NO_MOUNTS })))).toBe("permission_denied");
    const trusting = await lab.open({ defaultImage: image });
    await (await trusting.acquire(newRequest(NO_MOUNTS))).destroy();
  });

  test("a missing image or an invalid name is an error with the next step", async () => {
    const backend = await lab.open();
    const missing = backend.acquire(newRequest({ image: "docker:sandboxer.invalid/no-such-image:1" }));
    await expect(missing).rejects.toMatchObject({ code: "bad_request", hint: expect.stringContaining("docker load") });
    for (const image of [
      "host",
      "dir:/",
      "oci:/x:y",
      "docker:../../etc",
      "docker:",
      "docker:a b",
      "tar:relative.tar",
    ]) {
      expect(await errorCode(backend.acquire(newRequest({ image })))).toBe("bad_request");
    }
  });

  test("variables of the image are set, and requests win over them", async () => {
    const image = "sandboxer-test-variables";
    const [container] = [await lab.docker("create", "--network", "none", service.image, "/nothing")];
    await lab.docker("commit", "--change", "ENV GREETING=hello", "--change", "ENV OTHER=image", container, image);
    await lab.docker("rm", container);
    const backend = await lab.open();
    const handle = await backend.acquire(newRequest({ image, env: { OTHER: "request" } }));
    expect((await run(handle, ["sh", "-c", "echo $GREETING $OTHER"])).stdout).toBe("hello request\n");
    await handle.destroy();
  });

  test("an image that Docker built is pulled from a registry and imported from `docker save`", async ({ skip }) => {
    const tools = withGvisorTools(process.env["PATH"] ?? "");
    skip(
      findProgram("docker-registry", tools) === undefined,
      "docker-registry missing. Run: node test/kit/services/gvisor-tools.ts",
    );
    const registry = await startDockerRegistry();
    onTestFinished(() => registry.stop());
    await writeFile(join(folder, "images", "Dockerfile"), DOCKERFILE);
    const name = `${registry.host}/team/made:1`;
    await lab.docker("build", "--quiet", "--network", "none", "--tag", name, join(folder, "images"));
    await lab.docker("push", "--quiet", name);
    const archive = join(folder, "made.tar");
    await lab.docker("save", "--output", archive, name);

    for (const way of ["pull", "import"] as const) {
      const library = registryLibrary(join(folder, way), registry.host);
      onTestFinished(() => library.close());
      if (way === "import") await library.importArchive(createReadStream(archive), undefined);
      const held = await library.use("team/made:1");
      const files = await readdir(held.path);
      expect(files).toEqual(expect.arrayContaining(["bin", "kept", "srv"]));
      expect(files).not.toContain("gone");
      expect(held.defaults).toMatchObject({
        env: { GREETING: "hello from docker" },
        workingFolder: "/srv/app",
        user: "1234:55",
        command: ["sh", "-c", "true"],
      });
    }
  });
});
