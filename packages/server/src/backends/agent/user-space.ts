import { errnoOf } from "./agent-error.ts";
import type { AgentFiles } from "./agent-files.ts";

/** The environment of code inside, whatever the engine: its user, its folder, its variables. */
export const WORKING_FOLDER = "/workspace";
export const SANDBOX_USER = { uid: 1000, gid: 1000 } as const;

export const DEFAULT_ENVIRONMENT: Readonly<Record<string, string>> = {
  PATH: "/workspace/.local/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
  HOME: WORKING_FOLDER,
  USER: "user",
  LANG: "C.UTF-8",
  TERM: "xterm-256color",
};

const EEXIST = 17;

/**
 * For a fresh sandbox. Programs write into `/` too; existing files keep their owner. Foreign root filesystems have
 * neither the working folder nor its user.
 */
export async function prepareFolders(files: AgentFiles, hasWorkingFolder = false): Promise<void> {
  const rootOpened = files.set("/", { mode: 0o1777 });
  if (!hasWorkingFolder) {
    await makeFolderOnce(files, WORKING_FOLDER, 0o755);
    await files.set(WORKING_FOLDER, { owner: SANDBOX_USER });
  }
  await rootOpened;
}

export async function makeFolderOnce(files: AgentFiles, path: string, mode: number): Promise<void> {
  await files.makeFolder(path, { mode }).catch((error: unknown) => {
    if (errnoOf(error) !== EEXIST) throw error;
  });
}
