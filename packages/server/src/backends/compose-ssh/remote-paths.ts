import { SandboxerError, parseCopyId } from "@sandboxer/protocol";

/** The paths of a sandbox on its host. All are below `baseDir`, which `placement.ts` has checked. */
export interface RemotePaths {
  readonly baseDir: string;
  /** The workspace: the repository, and later changes. */
  readonly remoteDir: string;
  /** Written when the sandbox is complete; has its settings. */
  readonly recordFile: string;
  /** Held while the sandbox is being changed. */
  readonly lockFile: string;
  readonly project: string;
}

export function remotePaths(baseDir: string, sandboxId: string): RemotePaths {
  if (parseCopyId(sandboxId) === undefined)
    throw new SandboxerError("bad_request", `"${sandboxId}" is not a sandbox id.`);
  const sandboxes = `${baseDir}/sandboxes`;
  return {
    baseDir,
    remoteDir: `${sandboxes}/${sandboxId}`,
    recordFile: `${sandboxes}/${sandboxId}.json`,
    lockFile: `${sandboxes}/${sandboxId}.lock`,
    project: `sandboxer-${sandboxId}`,
  };
}

const SNAPSHOT_ID = /^[0-9a-f-]{36}$/;

export function artifactPath(baseDir: string, snapshotId: string): string {
  if (!SNAPSHOT_ID.test(snapshotId)) throw new SandboxerError("image_damaged", `"${snapshotId}" is not a snapshot id.`);
  return `${baseDir}/snapshots/${snapshotId}.tar.gz`;
}
