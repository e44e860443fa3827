import { hostname } from "node:os";
import { isErrno } from "@sandboxer/protocol";
import type { Holder } from "../records/sandbox-records.ts";
import { isServerAlive } from "./peers.ts";

export function thisHolder(url: string | null): Holder {
  return { url, host: hostname(), pid: process.pid };
}

/** A process of this machine is asked for by its number, one of another by its address. */
export async function isHolderAlive({ url, host, pid }: Holder): Promise<boolean> {
  if (host === hostname()) return isProcessAlive(pid) && (url === null || (await isServerAlive(url)));
  return url !== null && (await isServerAlive(url));
}

/** Whether it was a process of this machine that is not there any more; of others nothing is certain. */
export function isHolderGone({ host, pid }: Holder): boolean {
  return host === hostname() && !isProcessAlive(pid);
}

function isProcessAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return isErrno(error) && error.code === "EPERM";
  }
}
