import { chmod, mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { DockerEngine } from "./docker.ts";

const IMAGE = "sandboxer-test-host";

/** An image without a registry: an empty root whose programs come from this machine, mounted by `hostImageVolumes`. */
export async function importHostImage(docker: DockerEngine): Promise<string> {
  const root = await mkdtemp(join(tmpdir(), "sbx-image-"));
  try {
    for (const name of ["usr", "etc", "proc", "sys", "dev", "tmp", "workspace", "opt/node/bin"]) {
      await mkdir(join(root, name), { recursive: true });
    }
    await chmod(root, 0o755);
    await chmod(join(root, "tmp"), 0o1777);
    for (const name of ["bin", "sbin", "lib", "lib64"]) await symlink(`usr/${name}`, join(root, name));
    await writeFile(join(root, "etc/passwd"), "root:x:0:0::/:/bin/sh\nuser:x:1000:1000::/workspace:/bin/sh\n");
    await docker.importImage(IMAGE, root);
    return IMAGE;
  } finally {
    await rm(root, { recursive: true, force: true });
  }
}

export const HOST_IMAGE_PATH = "/opt/node/bin:/usr/bin:/bin:/usr/sbin:/sbin";

/** As a compose file has them. */
export function hostImageVolumes(): string[] {
  return ["/usr:/usr:ro", `${process.execPath}:/opt/node/bin/node:ro`];
}
