import { SandboxerError } from "@sandboxer/protocol";
import type { SandboxBackend } from "../../../backends/backend.ts";
import type { BackendsContext } from "../../room-contexts.ts";
import { type StateLabel, WORKSPACE_KIND } from "./workspace-archive.ts";

/** How a backend loads a saved state: by itself, or through the manager, which unpacks it into a new sandbox. */
export type LoadWay = "native" | "unpacked";

export function loadWay(backend: SandboxBackend, { kind, requirements, from }: StateLabel): LoadWay | undefined {
  const { extension, portable } = requirements;
  const native =
    typeof extension === "string"
      ? extension === backend.name && backend.capabilities.snapshot !== "none"
      : portable === undefined && (from === backend.name || backend.loads?.some((each) => each === kind) === true);
  if (native) return "native";
  const isPortable = kind === WORKSPACE_KIND && (extension !== undefined || portable !== undefined);
  return isPortable && backend.capabilities.files ? "unpacked" : undefined;
}

/** The backends of this server that can load a state. */
export function loadersOf({ options }: BackendsContext, state: StateLabel): string[] {
  const all = [...options.backends.values()];
  return all.filter((backend) => loadWay(backend, state) !== undefined).map(({ name }) => name);
}

/** Refuses, before anything is done, a state that the backend cannot load. */
export function checkLoadable(context: BackendsContext, backend: SandboxBackend, state: StateLabel): LoadWay {
  const way = loadWay(backend, state);
  if (way !== undefined) return way;
  const backends = loadersOf(context, state);
  throw new SandboxerError("image_incompatible", whyNot(backend, state), {
    hint:
      backends.length === 0
        ? "No backend of this server can. To restore on another backend, take the snapshot with the mode workspace."
        : `Choose ${backends.join(" or ")}, or take the snapshot with the mode workspace, which every backend with files can restore.`,
    details: { kind: state.kind, backend: backend.name, backends },
  });
}

export function whyNot({ name, capabilities }: SandboxBackend, { kind, requirements }: StateLabel): string {
  const { extension } = requirements;
  const by = typeof extension === "string" ? ` of ${extension}` : "";
  if (kind === WORKSPACE_KIND && !capabilities.files)
    return `The backend ${name} does not support files, so it cannot restore the snapshot.`;
  return `The backend ${name} cannot restore a snapshot of the kind ${kind}${by}.`;
}
