import { execFileSync } from "node:child_process";
import { mkdirSync, renameSync, rmSync, statfsSync } from "node:fs";
import { join } from "node:path";
import type { StoreMode } from "../hooks/control.ts";
import type { Watchdog } from "../servers/watchdog.ts";
import type { ChaosStore, StoreFault } from "./chaos-store.ts";

const VOLUME_BYTES = 8 * 1024 ** 3;

/** A folder on a file system of its own, whose size can change. */
export function openDirectoryChaosStore(
  folder: string,
  setMode: (server: number, mode: StoreMode) => void,
  watchdog: Watchdog,
): ChaosStore {
  const volume = join(folder, "volume");
  mkdirSync(volume, { recursive: true });
  const noVolume = mountVolume(volume, watchdog);
  const store = join(volume, "store");
  mkdirSync(store);

  const disturb = (fault: StoreFault, servers: readonly number[]): (() => void) => {
    switch (fault) {
      case "full":
        return fill(volume);
      case "vanish":
        return vanish(store);
      default:
        for (const server of servers) setMode(server, fault);
        return () => servers.forEach((server) => setMode(server, "ok"));
    }
  };
  return {
    impossible: new Map(noVolume === undefined ? [] : [["full", noVolume]]),
    addressFor: () => store,
    disturb: async (fault, servers) => {
      const end = disturb(fault, servers);
      return async () => end();
    },
    close: async () => {
      if (noVolume === undefined) execFileSync("umount", ["-l", volume]);
    },
  };
}

/** Undefined when it worked, else why there can be none here. */
function mountVolume(volume: string, watchdog: Watchdog): string | undefined {
  try {
    execFileSync("mount", ["-t", "tmpfs", "-o", `size=${VOLUME_BYTES}`, "tmpfs", volume], { stdio: "pipe" });
    watchdog.atEnd(`umount -l '${volume}' 2>/dev/null`);
    return undefined;
  } catch (error) {
    return `no tmpfs can be mounted: ${error instanceof Error ? error.message.split("\n")[0] : ""}`;
  }
}

/** Leaves no room for another byte. */
function fill(volume: string): () => void {
  const resize = (bytes: number): void => {
    execFileSync("mount", ["-o", `remount,size=${bytes}`, volume], { stdio: "pipe" });
  };
  for (;;) {
    const { blocks, bfree, bsize } = statfsSync(volume);
    try {
      resize(Math.max(1, blocks - bfree) * bsize);
      return () => resize(VOLUME_BYTES);
    } catch {
      // More was written meanwhile.
    }
  }
}

/** As when a volume is unmounted: an empty folder is in its place, and data written there is lost when it is back. */
function vanish(store: string): () => void {
  const away = `${store}.away`;
  renameSync(store, away);
  mkdirSync(store);
  return () => {
    // A server may be writing into it.
    const bare = `${store}.bare`;
    renameSync(store, bare);
    renameSync(away, store);
    rmSync(bare, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 });
  };
}
