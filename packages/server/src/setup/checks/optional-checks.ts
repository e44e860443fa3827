import { findGo } from "../engine/newest.ts";
import { findProgram } from "../files.ts";
import { tellingLine, runCommand } from "../run-command.ts";
import type { Check } from "./check.ts";

export const checkGo: Check = async ({ searchPath, signal }) => {
  const base = { name: "go", needed: false };
  const go = findGo(searchPath);
  if (go === undefined) {
    const message = "not there; only `sandboxer setup --newest` uses it";
    return { ...base, state: "missing", message, remedy: "https://go.dev/doc/install" };
  }
  const result = await runCommand([go, "version"], { signal });
  const version = /go(\d[\w.]*)/.exec(result.stdout)?.[1];
  return { ...base, state: "found", version, message: `${go}; builds the newest runsc (setup --newest)` };
};

export const checkDocker: Check = async ({ searchPath, signal }) => {
  const base = { name: "docker", needed: false };
  const docker = findProgram("docker", searchPath);
  if (docker === undefined) return { ...base, state: "missing", message: "not there; only images from Docker need it" };
  const result = await runCommand([docker, "version", "--format", "{{.Server.Version}}"], { signal });
  if (result.code === 0) return { ...base, state: "found", version: result.stdout.trim(), message: docker };
  return {
    ...base,
    state: "missing",
    message: `${docker} is there, its engine does not answer: ${tellingLine(result)}`,
    remedy: "systemctl start docker",
  };
};
