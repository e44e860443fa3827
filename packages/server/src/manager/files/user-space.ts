import { posix } from "node:path";
import { SandboxerError } from "@sandboxer/protocol";
import type { RawFiles, SandboxAccount, SandboxAccounts, SandboxFiles, SandboxHandle } from "../../backends/backend.ts";

/** A user that the sandbox does not know, or that may not be used. */
export class UnknownUserError extends SandboxerError {}

const NOBODY_ELSE: SandboxAccounts = {
  own: { name: "user", uid: 1000, gid: 1000, home: "/workspace" },
  find: (user) => {
    if (user === NOBODY_ELSE.own.name) return NOBODY_ELSE.own;
    throw new SandboxerError("bad_request", `The sandbox has no user ${JSON.stringify(user)}.`);
  },
  userName: (uid) => (uid === NOBODY_ELSE.own.uid ? NOBODY_ELSE.own.name : undefined),
  groupName: (gid) => (gid === NOBODY_ELSE.own.gid ? NOBODY_ELSE.own.name : undefined),
};

/**
 * The files of a sandbox as one of its users has them. The sandbox's own user has its own rights. For root, and for other
 * users where the server allows root, files are used with the rights of root, and new ones belong to the user.
 */
export class UserSpace {
  readonly account: SandboxAccount;
  readonly accounts: SandboxAccounts;
  readonly files: SandboxFiles;
  /** For attributes; undefined: there are none. */
  readonly root: RawFiles | undefined;

  /** Whether files are made by root for the user. */
  readonly #isForeign: boolean;

  private constructor(account: SandboxAccount, accounts: SandboxAccounts, handle: SandboxHandle, asRoot: boolean) {
    this.account = account;
    this.accounts = accounts;
    this.root = handle.rootFiles;
    this.files = (asRoot ? this.root : undefined) ?? handle.files;
    this.#isForeign = asRoot && account.uid !== 0;
  }

  /** `user`: absent, or the name of the sandbox's own user, is that user. */
  static async of(handle: SandboxHandle, user: string | undefined): Promise<UserSpace> {
    const accounts = (await handle.accounts?.()) ?? NOBODY_ELSE;
    const { own } = accounts;
    if (user === undefined || user === own.name) return new UserSpace(own, accounts, handle, false);
    try {
      const account = accounts.find(user);
      if (account.uid === own.uid) return new UserSpace(account, accounts, handle, false);
      // Others' files are reached as root, which the server has to allow.
      accounts.find("0");
      if (handle.rootFiles === undefined) throw new SandboxerError("not_supported", "The backend has one user only.");
      return new UserSpace(account, accounts, handle, true);
    } catch (error) {
      if (!(error instanceof SandboxerError)) throw error;
      const { code, message, hint, details } = error;
      throw new UnknownUserError(code, message, { cause: error, hint, details });
    }
  }

  /** Gives a file or folder that was just created to the user. */
  async own(path: string): Promise<void> {
    const { uid, gid } = this.account;
    if (this.#isForeign) await this.root?.set(path, { owner: { uid, gid } });
  }

  /** Makes a folder and the missing ones above it. */
  async makeFolders(path: string): Promise<void> {
    if (!this.#isForeign) return this.files.makeFolder(path, { parents: true });
    const missing: string[] = [];
    for (let at = path; at !== "/" && !(await this.#exists(at)); at = posix.dirname(at)) missing.unshift(at);
    for (const each of missing) {
      await this.files.makeFolder(each, { parents: true });
      await this.own(each);
    }
  }

  async #exists(path: string): Promise<boolean> {
    try {
      await this.files.stat(path);
      return true;
    } catch (error) {
      if (error instanceof SandboxerError && error.code === "file_not_found") return false;
      throw error;
    }
  }
}
