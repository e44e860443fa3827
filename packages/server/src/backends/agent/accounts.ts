import { SandboxerError } from "@sandboxer/protocol";
import { errnoOf } from "./agent-error.ts";
import type { AgentFiles } from "./agent-files.ts";

/** A user inside a sandbox. */
export interface Account {
  readonly name: string;
  readonly uid: number;
  readonly gid: number;
  /** Supplementary groups, without `gid`. */
  readonly groups: readonly number[];
  readonly home: string;
}

/** Code inside writes these files. */
const MAX_BYTES = 1024 * 1024;
const MAX_GROUPS = 1024;
const MAX_ID = 0xffff_fffe;
const SHOWN_NAMES = 10;
const ENOENT = 2;

export interface AccountFiles {
  readonly passwd: string;
  readonly group: string;
}

/** Read again for each use, so that users who were added inside count. */
export async function readAccountFiles(files: AgentFiles): Promise<AccountFiles> {
  const [passwd, group] = await Promise.all([readText(files, "/etc/passwd"), readText(files, "/etc/group")]);
  return { passwd, group };
}

/**
 * The account for `NAME`, `UID`, `NAME:GROUP` or `UID:GID`, as container images name users. A number without an entry
 * is a user with no name, group 0 and the home `/`; a given group is the only one.
 */
export function findAccount({ passwd, group }: AccountFiles, user: string): Account {
  const [wanted = "", wantedGroup] = user.split(":");
  const entries = lines(passwd).flatMap(accountOf);
  const number = idOf(wanted);
  const entry = entries.find(({ name }) => name === wanted) ?? entries.find(({ uid }) => uid === number);
  if (entry === undefined && number === undefined) throw unknown("user", wanted, entries);
  const account = entry ?? { name: wanted, uid: number ?? 0, gid: 0, home: "/" };
  const groups = lines(group).flatMap(groupOf);
  if (wantedGroup !== undefined) return { ...account, gid: groupId(groups, wantedGroup), groups: [] };
  const others = groups.filter(({ gid, members }) => gid !== account.gid && members.includes(account.name));
  return { ...account, groups: [...new Set(others.map(({ gid }) => gid))].slice(0, MAX_GROUPS) };
}

/** The names of users or groups by their numbers; the first name of a number counts. */
export function namesById(text: string): ReadonlyMap<number, string> {
  const names = new Map<number, string>();
  for (const line of lines(text)) {
    const [name = "", , number] = line.split(":");
    const id = idOf(number);
    if (name !== "" && id !== undefined && !names.has(id)) names.set(id, name);
  }
  return names;
}

function groupId(groups: readonly { name: string; gid: number }[], wanted: string): number {
  const gid = groups.find(({ name }) => name === wanted)?.gid ?? idOf(wanted);
  if (gid !== undefined) return gid;
  throw unknown("group", wanted, groups);
}

function accountOf(line: string): Omit<Account, "groups">[] {
  const [name = "", , uid, gid, , home = ""] = line.split(":");
  const [user, primary] = [idOf(uid), idOf(gid)];
  if (name === "" || user === undefined || primary === undefined) return [];
  return [{ name, uid: user, gid: primary, home: home.startsWith("/") ? home : "/" }];
}

function groupOf(line: string): { name: string; gid: number; members: readonly string[] }[] {
  const [name = "", , id, members = ""] = line.split(":");
  const gid = idOf(id);
  return name === "" || gid === undefined ? [] : [{ name, gid, members: members.split(",") }];
}

function idOf(text: string | undefined): number | undefined {
  if (text === undefined || !/^\d{1,10}$/.test(text)) return undefined;
  const id = Number(text);
  return id <= MAX_ID ? id : undefined;
}

function lines(text: string): string[] {
  return text.split("\n");
}

function unknown(what: "user" | "group", name: string, known: readonly { name: string }[]): SandboxerError {
  // Code inside chooses the names.
  const names = known.map((each) => each.name).filter((each) => /^[\w.-]{1,32}$/.test(each));
  const list = names.slice(0, SHOWN_NAMES).join(", ") + (names.length > SHOWN_NAMES ? ", …" : "");
  return new SandboxerError("bad_request", `The sandbox has no ${what} ${JSON.stringify(name)}.`, {
    hint: `${names.length === 0 ? `Its /etc/${what === "user" ? "passwd" : "group"} names none` : `It has ${list}`}. A number works without an entry.`,
  });
}

/** Empty if it is missing. */
async function readText(files: AgentFiles, path: string): Promise<string> {
  try {
    const chunks = await Array.fromAsync(files.read(path, { length: MAX_BYTES }));
    return Buffer.concat(chunks).toString("utf8");
  } catch (error) {
    if (errnoOf(error) === ENOENT) return "";
    throw error;
  }
}
