import { execFileSync } from "node:child_process";
import { copyFileSync, existsSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { withGvisorTools } from "../../../../../../test/kit/services/gvisor-tools.ts";

const APPLETS = ["sh", "cat", "echo", "ls", "sleep", "true", "id", "head", "mkdir", "test", "ps"];

/** A statically linked busybox: this machine's, or the one of the tests' tools. */
export function findBusybox(): string | { readonly missing: string } {
  const folders = withGvisorTools(process.env["PATH"] ?? "").split(delimiter);
  const found = folders.map((folder) => join(folder, "busybox")).find((path) => existsSync(path) && isStatic(path));
  return found ?? { missing: "There is no static busybox. Run: node test/kit/services/gvisor-tools.ts" };
}

function isStatic(path: string): boolean {
  try {
    execFileSync("sh", ["-c", `! ldd ${path} 2>/dev/null | grep -q '=>'`]);
    return true;
  } catch {
    return false;
  }
}

/** A root filesystem of a few megabytes, with nothing that is meant for sandboxes. */
export function makeBusyboxRoot(busybox: string, folder: string): void {
  for (const name of ["bin", "etc"]) mkdirSync(join(folder, name), { recursive: true });
  copyFileSync(busybox, join(folder, "bin/busybox"));
  for (const applet of APPLETS) symlinkSync("busybox", join(folder, "bin", applet));
  writeFileSync(join(folder, "etc/passwd"), "root:x:0:0::/:/bin/sh\nuser:x:1000:1000::/workspace:/bin/sh\n");
  writeFileSync(join(folder, "etc/kind"), "busybox\n");
}
