const NAME = /^checkpoint_(\d{1,16})\.img$/;
const MARK = /^checkpoint_(\d{1,16})\.removed$/;

export function checkpointName(wallMs: number): string {
  return `checkpoint_${Math.trunc(wallMs)}.img`;
}

/** Undefined for a text that is not a checkpoint name. */
export function checkpointMs(name: string): number | undefined {
  return numberIn(NAME.exec(name));
}

/**
 * Marks that an image was removed that no head ever named. Names of later images are greater, so that no name is used
 * twice: a delayed removal finds nothing.
 */
export function removalMarkName(ms: number): string {
  return `checkpoint_${ms}.removed`;
}

export function removalMarkMs(name: string): number | undefined {
  return numberIn(MARK.exec(name));
}

export function checkpointsFolder(sandboxId: string): string {
  return `${sandboxId}/checkpoints`;
}

/** The key of an image, or of an object beside it. */
export function checkpointKey(sandboxId: string, name: string): string {
  return `${checkpointsFolder(sandboxId)}/${name}`;
}

function numberIn(match: RegExpExecArray | null): number | undefined {
  const digits = match?.[1];
  return digits === undefined ? undefined : Number(digits);
}
