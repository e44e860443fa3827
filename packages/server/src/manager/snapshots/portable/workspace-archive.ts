import type { SnapshotPayload } from "../../../backends/backend.ts";

/** The one member of a portable capture: a gzip tar of the workspace, with relative names. */
export const WORKSPACE_MEMBER = "workspace.tar.gz";
export const DEFAULT_WORKSPACE = "/workspace";
export const WORKSPACE_KIND = "workspace-tar";

/** Facts about a saved state before its bytes are read. */
export interface StateLabel extends Pick<SnapshotPayload, "requirements"> {
  readonly kind: string;
  /** The backend that it was captured on. */
  readonly from?: string;
}

/** The counts of what was packed. */
export interface WorkspaceTally {
  files: number;
  folders: number;
  links: number;
  bytes: number;
  /** Sockets, pipes and devices, which are useless elsewhere. */
  leftOut: number;
  /** Files that are further names of one that was packed before; undefined: the backend cannot tell. */
  hardLinks: number | undefined;
  /** Extended attributes; undefined: the backend cannot tell. */
  attributes: number | undefined;
  /** Files and folders with more extended attributes than can be read. */
  attributesLost: number;
}

export function emptyTally(): WorkspaceTally {
  const counts = { files: 0, folders: 0, links: 0, bytes: 0, leftOut: 0, attributesLost: 0 };
  return { ...counts, hardLinks: undefined, attributes: undefined };
}
