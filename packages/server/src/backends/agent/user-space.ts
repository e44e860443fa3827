import type { Account } from "./accounts.ts";

/** The environment of code inside, whatever the engine: its user, its folder, its variables. */
export const WORKING_FOLDER = "/workspace";
export const SANDBOX_USER = { uid: 1000, gid: 1000 } as const;
/** The user of a sandbox for which nobody chose another one. */
export const DEFAULT_ACCOUNT: Account = { name: "user", ...SANDBOX_USER, groups: [], home: WORKING_FOLDER };

export const DEFAULT_ENVIRONMENT: Readonly<Record<string, string>> = {
  PATH: "/workspace/.local/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
  LANG: "C.UTF-8",
  TERM: "xterm-256color",
};
