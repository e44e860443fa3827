import { execFileSync } from "node:child_process";
import { mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { withGvisorTools } from "./gvisor-tools.ts";

const PYTHON = "/usr/bin/python3";
/** The parts of Debian's Python for an image: the programs, their libraries, the standard library without tests, and pip. */
const FILES = `
import glob, os, subprocess, sys, sysconfig
stdlib = sysconfig.get_path("stdlib")
programs = [os.path.realpath(sys.executable), "/bin/bash", "/bin/sh"]
binaries = programs + glob.glob(stdlib + "/lib-dynload/*.so")
said = subprocess.run(["ldd", *binaries], capture_output=True, text=True).stdout
libraries = {word for word in said.split() if word.startswith("/") and not word.endswith(":")}
print("\\n".join([*programs, sys.executable, *sorted(libraries), stdlib, "/usr/lib/python3/dist-packages/pip"]))
`;
const LEFT_OUT = ["EXTERNALLY-MANAGED", "test", "tests", "__pycache__", "idlelib", "lib2to3", "config-*"];

/** Pushes an image with Python and pip to a registry, as `python:3.12-slim` has them; returns its name. */
export async function pushPythonImage(registry: string, folder: string): Promise<string> {
  const env = { ...process.env, HOME: folder, PATH: withGvisorTools(process.env["PATH"] ?? "") };
  const run = (program: string, ...args: string[]): string =>
    execFileSync(program, args, { env, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
  const root = join(folder, "root");
  for (const name of ["etc", "tmp", "proc", "dev", "sys"]) await mkdir(join(root, name), { recursive: true });
  await writeFile(join(root, "etc/passwd"), "root:x:0:0:root:/root:/bin/bash\n");
  await writeFile(join(root, "etc/group"), "root:x:0:\n");
  const list = join(folder, "files");
  await writeFile(list, run(PYTHON, "-c", FILES));
  const excluded = LEFT_OUT.map((name) => `--exclude=${name}`);
  const archive = join(folder, "files.tar");
  run("tar", "-chf", archive, "--absolute-names", ...excluded, "--files-from", list);
  run("tar", "-xf", archive, "--absolute-names", "--transform", "s,^/*,,", "-C", root);
  const layout = `${join(folder, "layout")}:latest`;
  run("umoci", "init", "--layout", join(folder, "layout"));
  run("umoci", "new", "--image", layout);
  run("umoci", "insert", "--image", layout, root, "/");
  run("umoci", "config", "--image", layout, "--config.env", "PATH=/usr/local/bin:/usr/bin:/bin");
  const name = `${registry}/library/python:slim`;
  run("skopeo", "copy", "--insecure-policy", "--dest-tls-verify=false", `oci:${layout}`, `docker://${name}`);
  for (const each of [root, archive]) await rm(each, { recursive: true });
  return name;
}
