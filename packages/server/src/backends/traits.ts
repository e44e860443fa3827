import type { Capabilities, FileExtras, SandboxBackend } from "./backend.ts";

/** What is known of a backend before its code is loaded. Once it is open, it may say that it can do less or more. */
type Traits = Required<Pick<SandboxBackend, "name" | "capabilities" | "loads" | "keeps">>;

/** What our agent can say of files, and do, on file systems that have it. */
const AGENT_FILES: FileExtras = { hardLinks: true, extendedAttributes: true };
/** What a shell can. */
export const SHELL_FILES: FileExtras = { hardLinks: true, extendedAttributes: false };

const CONTAINER: Capabilities = {
  snapshot: "filesystem",
  filesystemSnapshot: true,
  pty: true,
  files: true,
  connect: true,
  network: true,
  limits: true,
  selfHosted: true,
  outlivesServer: true,
};

export const GVISOR = {
  name: "gvisor",
  capabilities: { ...CONTAINER, snapshot: "full", outlivesServer: false },
  loads: ["gvisor-checkpoint", "workspace-tar"],
  keeps: AGENT_FILES,
} satisfies Traits;

export const DOCKER = {
  name: "docker",
  capabilities: CONTAINER,
  loads: ["docker-image-tar", "docker-checkpoint", "workspace-tar"],
  keeps: AGENT_FILES,
} satisfies Traits;

/** Daytona stops what nobody uses, so a handle that is asked for later may find its sandbox stopped. */
export const DAYTONA = {
  name: "daytona",
  capabilities: { ...CONTAINER, connect: false, limits: false, selfHosted: false },
  loads: ["daytona-snapshot"],
  keeps: SHELL_FILES,
} satisfies Traits;
