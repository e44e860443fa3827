import { execFileSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const APPLETS = ["sh", "cat", "echo", "ls", "sleep", "true", "id", "head", "mkdir", "test", "ps"];
const DOWNLOAD_TIMEOUT_MS = 30_000;

let program: string | { readonly missing: string } | undefined;

/** A statically linked busybox: this machine's, or Debian's package. */
export function findBusybox(): string | { readonly missing: string } {
  program ??= locate();
  return program;
}

function locate(): string | { readonly missing: string } {
  const installed = "/bin/busybox";
  if (existsSync(installed) && isStatic(installed)) return installed;
  const folder = mkdtempSync(join(tmpdir(), "sandboxer-busybox-"));
  try {
    const options = { cwd: folder, stdio: "pipe", timeout: DOWNLOAD_TIMEOUT_MS } as const;
    execFileSync("apt-get", ["download", "busybox-static"], options);
    execFileSync("sh", ["-c", "dpkg -x busybox-static_*.deb x"], options);
    const kept = join(tmpdir(), `sandboxer-busybox-${process.pid}`);
    cpSync(join(folder, "x/bin/busybox"), kept);
    return kept;
  } catch (thrown) {
    return { missing: `there is no static busybox: ${(thrown as Error).message.split("\n")[0]}` };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function isStatic(path: string): boolean {
  try {
    execFileSync("sh", ["-c", `! ldd ${path} 2>/dev/null | grep -q '=>'`]);
    return true;
  } catch {
    return false;
  }
}

/** A root filesystem of a few megabytes, with nothing in it that is for sandboxes. */
export function makeBusyboxRoot(busybox: string, folder: string): void {
  for (const name of ["bin", "etc"]) mkdirSync(join(folder, name), { recursive: true });
  cpSync(busybox, join(folder, "bin/busybox"));
  for (const applet of APPLETS) symlinkSync("busybox", join(folder, "bin", applet));
  writeFileSync(join(folder, "etc/passwd"), "root:x:0:0::/:/bin/sh\nuser:x:1000:1000::/workspace:/bin/sh\n");
  writeFileSync(join(folder, "etc/kind"), "busybox\n");
}
