import { execFileSync } from "node:child_process";
import { chmod, copyFile, mkdir, symlink, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";

const PROGRAMS = ["/bin/bash", "/usr/bin/whoami"];

/** A small image for a server on this machine: bash and whoami with their libraries, and no user but root. */
export async function makeBashImage(folder: string): Promise<string> {
  const said = execFileSync("ldd", PROGRAMS, { encoding: "utf8" });
  const libraries = said.split(/\s+/).filter((word) => word.startsWith("/") && !word.endsWith(":"));
  for (const path of new Set([...PROGRAMS, ...libraries])) {
    await mkdir(join(folder, dirname(path)), { recursive: true });
    await copyFile(path, join(folder, path));
  }
  for (const name of ["etc", "proc", "dev", "sys", "tmp"]) await mkdir(join(folder, name), { recursive: true });
  await chmod(join(folder, "tmp"), 0o1777);
  await symlink("bash", join(folder, "bin/sh"));
  await writeFile(join(folder, "etc/passwd"), "root:x:0:0:root:/root:/bin/bash\n");
  await writeFile(join(folder, "etc/group"), "root:x:0:\n");
  return `dir:${folder}`;
}
