import type { SnapshotPayload } from "../../backends/backend.ts";

/** The one member of a portable capture: a gzip tar of the workspace, with relative names. */
export const WORKSPACE_MEMBER = "workspace.tar.gz";
export const DEFAULT_WORKSPACE = "/workspace";
export const WORKSPACE_KIND = "workspace-tar";

/** What is known of a saved state before its bytes are looked at. */
export interface StateLabel extends Pick<SnapshotPayload, "requirements"> {
  readonly kind: string;
  /** The backend that it was captured on. */
  readonly from?: string;
}

/** What was packed. */
export interface WorkspaceTally {
  files: number;
  folders: number;
  links: number;
  bytes: number;
  /** Sockets, pipes and devices, which mean nothing elsewhere. */
  leftOut: number;
}
