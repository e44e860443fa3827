import type { ComposeProject } from "../../../src/backends/compose-ssh/handle.ts";
import { parsePlacement } from "../../../src/backends/compose-ssh/placement.ts";
import { remotePaths } from "../../../src/backends/compose-ssh/remote-paths.ts";

export function sampleProject(sandboxId: string, placed: Readonly<Record<string, string>>): ComposeProject {
  const placement = parsePlacement(placed);
  return {
    ...remotePaths(placement.base_dir, sandboxId),
    sandboxId,
    placement,
    compose: "plugin",
    composeFile: "compose.yaml",
    service: "app",
  };
}
