import { SandboxerError } from "@sandboxer/protocol";
import type { SandboxAccounts } from "../backend.ts";
import { findAccount, namesById, readAccountFiles, type Account } from "./accounts.ts";
import type { AgentFiles } from "./agent-files.ts";
import { DEFAULT_ACCOUNT, WORKING_FOLDER } from "./user-space.ts";

export interface UserOptions {
  /** The sandbox's user, as in `/etc/passwd` inside; absent: `user`, with the uid 1000. */
  readonly user?: string | undefined;
  /** The working folder of programs; absent: the user's home. */
  readonly workingFolder?: string | undefined;
  /** Whether programs may run as root. */
  readonly rootInside: boolean;
  /** Whether set-user-ID programs, such as sudo, may raise a program's rights. Absent: no. */
  readonly gainsRights?: boolean;
}

interface Place {
  readonly account: Account;
  readonly folder: string;
}

/** The users of one sandbox: whose rights programs have, and in which folder they start. */
export class SandboxUsers {
  readonly #files: AgentFiles;
  readonly #options: UserOptions;

  constructor(files: AgentFiles, options: UserOptions) {
    this.#files = files;
    this.#options = options;
  }

  get gainsRights(): boolean {
    return this.#options.gainsRights === true;
  }

  /** The chosen user, as it was named. */
  get own(): string | undefined {
    return this.#options.user;
  }

  /** Whether nobody chose a user or a folder. */
  get areDefault(): boolean {
    const { user, workingFolder } = this.#options;
    return user === undefined && workingFolder === undefined;
  }

  /**
   * The given user, or the sandbox's own, and where its programs start that name no folder. Root is refused if the
   * server does not allow it. At once if nothing inside has to be read.
   */
  place(user = this.#options.user): Place | Promise<Place> {
    if (user !== undefined) return this.#find(user);
    return { account: DEFAULT_ACCOUNT, folder: this.#options.workingFolder ?? DEFAULT_ACCOUNT.home };
  }

  async account(user?: string): Promise<Account> {
    return (await this.place(user)).account;
  }

  async workingFolder(): Promise<string> {
    return (await this.place()).folder;
  }

  async #find(user: string): Promise<Place> {
    const files = await readAccountFiles(this.#files);
    const account = findAccount(files, user);
    const { user: own, workingFolder, rootInside } = this.#options;
    if (account.uid === 0 && !rootInside) throw rootRefused();
    return { account, folder: workingFolder ?? (own === undefined ? DEFAULT_ACCOUNT : findAccount(files, own)).home };
  }

  async accounts(): Promise<SandboxAccounts> {
    const files = await readAccountFiles(this.#files);
    const { user, rootInside } = this.#options;
    const [users, groups] = [namesById(files.passwd), namesById(files.group)];
    return {
      own: user === undefined ? DEFAULT_ACCOUNT : findAccount(files, user),
      find: (name) => {
        const account = findAccount(files, name);
        if (account.uid === 0 && !rootInside) throw rootRefused();
        return account;
      },
      userName: (uid) => users.get(uid),
      groupName: (gid) => groups.get(gid),
    };
  }

  /** The folder of a portable capture: never all files. */
  async workspaceFolder(): Promise<string> {
    const folder = await this.workingFolder();
    const home = folder === "/" ? (await this.account()).home : folder;
    return home === "/" ? WORKING_FOLDER : home;
  }
}

export function rootRefused(): SandboxerError {
  return new SandboxerError("permission_denied", "This server does not run programs as root inside a sandbox.", {
    hint: "Use another user, or ask the operator to allow root with --root-inside (docs/guides/users.md).",
  });
}

/** Variables that belong to a user. The search path loses the folder of the default user, who could mislead others. */
export function variablesOf({ name, uid, home }: Account, { PATH }: Readonly<Record<string, string>>) {
  const own = uid === 0 || home === "/" ? "" : `${home}/.local/bin:`;
  const path = PATH?.replace(`${WORKING_FOLDER}/.local/bin:`, own);
  return { HOME: home, USER: name, LOGNAME: name, ...(path === undefined ? {} : { PATH: path }) };
}
