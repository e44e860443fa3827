import type { Filestore } from "./sandbox-process-tree.ts";

const INTERVAL_MS = 250;

/**
 * Holds a sandbox to its disk limit: runsc 20240729 has no limit for the writable layer as a whole. While it is over
 * the limit and growing, everything inside is killed; what only reads or removes goes on.
 */
export function watchDiskLimit(filestore: Filestore, limitBytes: number, onExceeded: () => Promise<void>): () => void {
  let before = 0;
  let stopped = false;
  let timer: NodeJS.Timeout | undefined;
  const look = async (): Promise<void> => {
    const usedBytes = await filestore.usedBytes();
    if (usedBytes > limitBytes && usedBytes > before) await onExceeded().catch(() => {});
    before = usedBytes;
    if (!stopped) schedule();
  };
  const schedule = (): void => {
    timer = setTimeout(() => void look(), INTERVAL_MS);
    timer.unref();
  };
  schedule();
  return () => {
    stopped = true;
    clearTimeout(timer);
  };
}
