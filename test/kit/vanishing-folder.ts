import { execFileSync } from "node:child_process";
import { mkdir, readdir, rename, rmdir } from "node:fs/promises";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { smallVolume } from "./small-volume.ts";
import { temporaryFolder } from "./temporary-folder.ts";

/** A folder that disappears and comes back, like a mount: meanwhile an empty folder is at its path. */
export interface VanishingFolder {
  readonly path: string;
  vanish(): Promise<void>;
  comeBack(): Promise<void>;
  /** The entries of the bare folder while the other one is away, at any depth. */
  strays(): Promise<readonly string[]>;
}

/** Its content is moved aside. */
export async function movedFolder(): Promise<VanishingFolder> {
  const folder = await temporaryFolder();
  const [path, aside] = [join(folder, "store"), join(folder, "aside")];
  await mkdir(path);
  return {
    path,
    vanish: async () => {
      await rename(path, aside);
      await mkdir(path);
    },
    comeBack: async () => {
      await rmdir(path);
      await rename(aside, path);
    },
    strays: () => readdir(path, { recursive: true }),
  };
}

/** It is unmounted. */
async function mountedFolder(): Promise<VanishingFolder> {
  const folder = await temporaryFolder();
  const [path, content] = [join(folder, "store"), join(folder, "content")];
  for (const each of [path, content]) await mkdir(each);
  const mount = (): void => void execFileSync("mount", ["--bind", content, path]);
  const unmount = (): void => void execFileSync("umount", ["--lazy", path]);
  let mounted = true;
  mount();
  onTestFinished(() => {
    if (mounted) unmount();
  });
  return {
    path,
    vanish: async () => {
      unmount();
      mounted = false;
    },
    comeBack: async () => {
      mount();
      mounted = true;
    },
    strays: () => readdir(path, { recursive: true }),
  };
}

/** Why nothing can be mounted here; undefined if it can. */
function whyNoMount(): string | undefined {
  const trial = smallVolume(4096);
  if ("skipped" in trial) return trial.skipped;
  trial.remove();
  return undefined;
}

export const VANISHING: readonly (readonly [
  how: string,
  make: () => Promise<VanishingFolder>,
  why: string | undefined,
])[] = [
  ["moved away", movedFolder, undefined],
  ["unmounted", mountedFolder, whyNoMount()],
];
