import { execFileSync, spawnSync } from "node:child_process";
import { chmodSync, chownSync, copyFileSync, existsSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";

/** The programs of apt, dpkg and packages' scripts, and those that manage users. */
const PROGRAMS = `
  sh bash cat chown chmod diff find grep id ls mkdir mv rm sed stat su tar touch tr whoami apt-get apt-config
  dpkg dpkg-deb dpkg-query dpkg-split dpkg-trigger ldconfig start-stop-daemon useradd groupadd usermod`
  .split(/\s+/)
  .filter(Boolean);
const FILES = [
  "/usr/lib/apt/apt-helper",
  ...["file", "copy", "store"].map((method) => `/usr/lib/apt/methods/${method}`),
  "/usr/lib/x86_64-linux-gnu/security/pam_permit.so",
  ...["cputable", "ostable", "tupletable"].map((table) => `/usr/share/dpkg/${table}`),
  "/etc/nsswitch.conf",
  "/etc/login.defs",
];
/** Links of a Debian with a merged /usr. */
const LINKS = ["bin", "sbin", "lib", "lib64"];
const FOLDERS = `
  etc/apt/apt.conf.d etc/apt/preferences.d etc/apt/sources.list.d etc/pam.d etc/sudoers.d
  var/lib/apt/lists/partial var/cache/apt/archives/partial var/log/apt var/lib/dpkg/info
  var/lib/dpkg/updates var/lib/dpkg/triggers home/debian root tmp usr/lib64`
  .split(/\s+/)
  .filter(Boolean);

/** Why this machine is not a Debian with everything needed; undefined if it is. */
export function whyNoDebianRoot(): string | undefined {
  if (process.arch !== "x64") return "It is put together from the files of an x86-64 Debian.";
  const missing = PROGRAMS.find((name) => placeOf(name) === undefined) ?? FILES.find((path) => !existsSync(path));
  return missing === undefined ? undefined : `It is put together from this machine's Debian, which has no ${missing}.`;
}

/**
 * A small Debian from the files of this machine: apt, dpkg, a shell, users, and a repository in `/repository` with the
 * package `hello-users`, which adds a group and gives it a file.
 */
export function makeDebianRoot(root: string): void {
  for (const folder of FOLDERS) mkdirSync(join(root, folder), { recursive: true });
  for (const link of LINKS) symlinkSync(`usr/${link}`, join(root, link));
  const paths = [...PROGRAMS.map((name) => placeOf(name) ?? ""), ...FILES];
  for (const path of new Set([...paths, ...librariesOf(paths)])) copy(path, root);
  // PAM lets everybody in: access to `su` is not tested here.
  const permit = ["auth", "account", "session"].map((kind) => `${kind} sufficient pam_permit.so\n`).join("");
  const texts = {
    "etc/pam.d/su": permit,
    "etc/passwd":
      "root:x:0:0:root:/root:/bin/bash\n_apt:x:42:65534::/nonexistent:/usr/sbin/nologin\ndebian:x:1500:1500::/home/debian:/bin/bash\n",
    "etc/group": "root:x:0:\nadm:x:4:debian\nsudo:x:27:debian\ndebian:x:1500:\nnogroup:x:65534:\n",
    "etc/shadow": "root:*:19000:0:99999:7:::\ndebian:*:19000:0:99999:7:::\n",
    "etc/apt/sources.list": "deb [trusted=yes] file:/repository ./\n",
    "var/lib/dpkg/status": "",
    "var/lib/dpkg/arch": "amd64\n",
  };
  for (const [path, text] of Object.entries(texts)) writeFileSync(join(root, path), text);
  chmodSync(join(root, "usr/bin/su"), 0o4755);
  chownSync(join(root, "home/debian"), 1500, 1500);
  makeRepository(join(root, "repository"), join(root, "tmp"));
}

function makeRepository(repository: string, scratch: string): void {
  const tree = join(scratch, "hello-users");
  for (const folder of ["DEBIAN", "usr/share/hello-users"]) mkdirSync(join(tree, folder), { recursive: true });
  writeFileSync(join(tree, "usr/share/hello-users/file"), "hello\n");
  writeFileSync(
    join(tree, "DEBIAN/control"),
    "Package: hello-users\nVersion: 1.0\nArchitecture: all\nMaintainer: Nobody <nobody@example.com>\nDescription: a test\n",
  );
  writeFileSync(
    join(tree, "DEBIAN/postinst"),
    "#!/bin/sh\nset -e\ngroupadd --gid 777 hello\nchown :hello /usr/share/hello-users/file\nchmod 2750 /usr/share/hello-users/file\n",
    { mode: 0o755 },
  );
  mkdirSync(repository);
  execFileSync("dpkg-deb", ["--build", "--root-owner-group", tree, join(repository, "hello-users.deb")]);
  const index = execFileSync("dpkg-scanpackages", ["--multiversion", "."], {
    cwd: repository,
    stdio: ["ignore", "pipe", "ignore"],
  });
  writeFileSync(join(repository, "Packages"), index);
}

function placeOf(name: string): string | undefined {
  return ["/usr/bin", "/usr/sbin"].map((folder) => join(folder, name)).find((path) => existsSync(path));
}

function librariesOf(paths: readonly string[]): string[] {
  // It fails for files that are not programs, and still reports the others.
  const { stdout } = spawnSync("ldd", paths, { encoding: "utf8" });
  return [...stdout.matchAll(/(\/\S+) \(0x/g)].map(([, library]) => library ?? "");
}

function copy(path: string, root: string): void {
  const target = join(root, path.replace(/^\/(bin|sbin|lib|lib64)\//, "/usr/$1/"));
  mkdirSync(dirname(target), { recursive: true });
  copyFileSync(path, target);
}
