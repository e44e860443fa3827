/** Kills a process that may just have ended by itself. */
export function killQuietly(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}

/** Kills a process that leads a group, with all that it has started; whatever of it is gone already. */
export function killGroupOf({ pid }: { readonly pid?: number | undefined }): void {
  try {
    if (pid !== undefined) process.kill(-pid, "SIGKILL");
  } catch {
    // The group is gone already.
  }
}

/** Whether there is a process of this number, whosever it is. */
export function isProcessAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== "ESRCH";
  }
}
