import { findGo } from "../go.ts";
import { findProgram } from "../files.ts";
import { runCommand, tellingLine } from "../run-command.ts";
import type { Check, CheckContext, CheckResult } from "./check.ts";

/** The small programs that start a sandbox: every Debian has them, a slim container image may not. */
export const checkTools: Check = async (context) => [
  await checkSetpriv(context),
  describe("mkfifo", findProgram("mkfifo", context.searchPath), "apt-get install coreutils"),
];

/** BusyBox has a `setpriv` without the one option that is needed. */
async function checkSetpriv({ searchPath, signal }: CheckContext): Promise<CheckResult> {
  const remedy = "apt-get install util-linux";
  const path = findProgram("setpriv", searchPath);
  const found = describe("setpriv", path, remedy);
  if (path === undefined) return found;
  const result = await runCommand([path, "--pdeathsig", "KILL", "--", process.execPath, "--version"], { signal });
  if (result.code === 0) return found;
  return { ...found, state: "missing", message: `${path} does not know --pdeathsig: ${tellingLine(result)}`, remedy };
}

function describe(name: string, path: string | undefined, remedy: string): CheckResult {
  const base = { name, needed: true };
  if (path !== undefined) return { ...base, state: "found", message: path };
  return { ...base, state: "missing", message: "missing; no sandbox can start without it", remedy };
}

export const checkGo: Check = async ({ searchPath, signal }) => {
  const base = { name: "go", needed: false };
  const go = findGo(searchPath);
  if (go === undefined) {
    const message = "missing; the newest runsc cannot be built without it";
    return { ...base, state: "missing", message, remedy: "https://go.dev/doc/install" };
  }
  const result = await runCommand([go, "version"], { signal });
  const version = /go(\d[\w.]*)/.exec(result.stdout)?.[1];
  return { ...base, state: "found", version, message: `${go}; builds the newest runsc (setup --newest)` };
};

export const checkDocker: Check = async ({ searchPath, signal }) => {
  const base = { name: "docker", needed: false };
  const docker = findProgram("docker", searchPath);
  if (docker === undefined) return { ...base, state: "missing", message: "missing; only images from Docker need it" };
  const result = await runCommand([docker, "version", "--format", "{{.Server.Version}}"], { signal });
  if (result.code === 0) return { ...base, state: "found", version: result.stdout.trim(), message: docker };
  return {
    ...base,
    state: "missing",
    message: `${docker} is installed, but its engine does not answer: ${tellingLine(result)}`,
    remedy: "systemctl start docker",
  };
};
