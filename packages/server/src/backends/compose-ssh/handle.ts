import { SandboxerError } from "@sandboxer/protocol";
import { z } from "zod";
import type { ExtensionHandle } from "../extension/extension.ts";
import { type ComposePlacement, parsePlacement } from "./placement.ts";
import { remotePaths, type RemotePaths } from "./remote-paths.ts";

/** A compose project on a host: the facts for every script there. */
export interface ComposeProject extends RemotePaths {
  readonly sandboxId: string;
  readonly placement: ComposePlacement;
  /** `docker compose`, or the program `docker-compose`. */
  readonly compose: "plugin" | "standalone";
  /** In the workspace. */
  readonly composeFile: string;
  /** Where commands run. */
  readonly service: string;
}

const ownSchema = z.object({
  sandbox_id: z.string(),
  compose: z.enum(["plugin", "standalone"]),
  compose_file: z.string(),
  service: z.string(),
});
const OWN_KEYS: readonly string[] = ["sandbox_id", "compose", "remote_dir", "project"];

export function toHandle(project: ComposeProject): ExtensionHandle {
  const { placement, sandboxId, compose, composeFile, service, remoteDir, project: name } = project;
  const place = Object.entries(placement).flatMap(([key, value]) =>
    value === undefined ? [] : [[key, String(value)]],
  );
  return {
    ...(Object.fromEntries(place) as Record<string, string>),
    sandbox_id: sandboxId,
    compose,
    compose_file: composeFile,
    service,
    remote_dir: remoteDir,
    project: name,
  };
}

/**
 * Handles come from files and hosts: paths are derived again from the id and the base folder, never taken from them.
 */
export function fromHandle(handle: ExtensionHandle): ComposeProject {
  const own = ownSchema.safeParse(handle);
  if (!own.success) {
    throw new SandboxerError("internal", `The handle of a compose-ssh sandbox is damaged: ${own.error.message}`);
  }
  const placement = parsePlacement(
    Object.fromEntries(Object.entries(handle).filter(([key]) => !OWN_KEYS.includes(key))),
  );
  const { sandbox_id: sandboxId, compose, compose_file: composeFile, service } = own.data;
  return { ...remotePaths(placement.base_dir, sandboxId), sandboxId, placement, compose, composeFile, service };
}
