import type { Capabilities, FileExtras, SandboxBackend } from "./backend.ts";

/** The facts about a backend before its code is loaded. Once it is open, it may report fewer or more capabilities. */
type Traits = Required<Pick<SandboxBackend, "name" | "capabilities" | "loads" | "keeps">>;

/** The file features of our agent, on file systems that have them. */
const AGENT_FILES: FileExtras = { hardLinks: true, extendedAttributes: true };
/** The file features of a shell. */
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
  capabilities: { ...CONTAINER, snapshot: "full", outlivesServer: false, users: true },
  loads: ["gvisor-checkpoint", "workspace-tar"],
  keeps: AGENT_FILES,
} satisfies Traits;

export const DOCKER = {
  name: "docker",
  capabilities: { ...CONTAINER, users: true },
  loads: ["docker-image-tar", "docker-checkpoint", "workspace-tar"],
  keeps: AGENT_FILES,
} satisfies Traits;

/** Daytona stops idle sandboxes, so a later call may find its sandbox stopped. */
export const DAYTONA = {
  name: "daytona",
  capabilities: { ...CONTAINER, connect: false, limits: false, selfHosted: false },
  loads: ["daytona-snapshot"],
  keeps: SHELL_FILES,
} satisfies Traits;
