const NAME = /^checkpoint_(\d{1,16})\.img$/;

export function checkpointName(wallMs: number): string {
  return `checkpoint_${Math.trunc(wallMs)}.img`;
}

/** Undefined for a text that is no checkpoint's name. */
export function checkpointMs(name: string): number | undefined {
  const digits = NAME.exec(name)?.[1];
  return digits === undefined ? undefined : Number(digits);
}
