import { SandboxerError, parseCopyId } from "@sandboxer/protocol";

/** Everything of a sandbox on its host. All of it is below `baseDir`, whose form `placement.ts` has checked. */
export interface RemotePaths {
  readonly baseDir: string;
  /** The workspace: the repository, and what came since. */
  readonly remoteDir: string;
  /** Written when the sandbox is complete; says what it was made of. */
  readonly recordFile: string;
  /** Held by whoever changes the sandbox. */
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
