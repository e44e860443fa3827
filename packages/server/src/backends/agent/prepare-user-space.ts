import { readAccountFiles, type Account } from "./accounts.ts";
import type { AgentClient } from "./agent-client.ts";
import { errnoOf } from "./agent-error.ts";
import type { AgentFiles } from "./agent-files.ts";
import { DEFAULT_ACCOUNT, SANDBOX_USER, WORKING_FOLDER } from "./user-space.ts";

const EEXIST = 17;

/** The agent with the users of its sandbox. */
type Inside = Pick<AgentClient, "rootFiles" | "users" | "becomeUser">;

/**
 * For a fresh sandbox. Programs write into `/` too; existing files keep their owner. `isOurs`: the root filesystem was
 * made for sandboxes, and has the working folder and its user.
 */
export async function prepareUserSpace(agent: Inside, isOurs: boolean): Promise<void> {
  const { rootFiles: files, users } = agent;
  const isReady = isOurs && users.areDefault;
  // Together: an agent that ends fails both, and both failures must be handled.
  await Promise.all([files.set("/", { mode: 0o1777 }), isReady ? undefined : prepareFolders(agent, isOurs)]);
}

async function prepareFolders(agent: Inside, isOurs: boolean): Promise<void> {
  const { rootFiles: files, users } = agent;
  if (!isOurs) await addDefaultAccount(files, users.own === DEFAULT_ACCOUNT.name);
  const account = await users.account();
  const [folder, workspace] = await Promise.all([users.workingFolder(), users.workspaceFolder()]);
  for (const path of new Set([WORKING_FOLDER, folder])) await makeOwnFolder(files, path, account);
  if (users.gainsRights) await allowSudo(files, account);
  if (account.uid === SANDBOX_USER.uid && account.gid === SANDBOX_USER.gid && workspace === WORKING_FOLDER) return;
  await agent.becomeUser(account, workspace);
}

/** Many programs need an entry for their user. `isNamed`: it is needed even if another name has its number. */
async function addDefaultAccount(files: AgentFiles, isNamed: boolean): Promise<void> {
  const { passwd, group } = await readAccountFiles(files);
  const { name, uid, gid, home } = DEFAULT_ACCOUNT;
  const isTaken = (text: string, id: number): boolean =>
    text.split("\n").some((line) => line.startsWith(`${name}:`) || (!isNamed && line.split(":")[2] === String(id)));
  const append = (text: string, line: string): Buffer =>
    Buffer.from(`${text}${text === "" || text.endsWith("\n") ? "" : "\n"}${line}\n`);
  // An image without /etc has no users at all.
  const write = (path: string, content: Buffer): Promise<void> => files.write(path, content).catch(() => {});
  if (isTaken(passwd, uid)) return;
  await write("/etc/passwd", append(passwd, `${name}:*:${uid}:${gid}:${name}:${home}:/bin/sh`));
  if (!isTaken(group, gid)) await write("/etc/group", append(group, `${name}:x:${gid}:`));
}

/** Only where the image has sudo. */
async function allowSudo(files: AgentFiles, { name, uid }: Account): Promise<void> {
  const hasSudo = await files.stat("/etc/sudoers.d").then(
    ({ kind }) => kind === "folder",
    () => false,
  );
  if (!hasSudo || uid === 0 || !/^[a-z_][\w-]*$/i.test(name)) return;
  const rule = Buffer.from(`${name} ALL=(ALL:ALL) NOPASSWD: ALL\n`);
  await files.write("/etc/sudoers.d/sandboxer", rule, { mode: 0o440 });
}

/** A folder of the image keeps its owner, except the one for sandboxes. */
async function makeOwnFolder(files: AgentFiles, path: string, { uid, gid }: Account): Promise<void> {
  const exists =
    path !== WORKING_FOLDER &&
    (await files.stat(path).then(
      () => true,
      () => false,
    ));
  if (exists) return;
  await files.makeFolder(path, { parents: true, mode: 0o755 });
  await files.set(path, { owner: { uid, gid } });
}

export async function makeFolderOnce(files: AgentFiles, path: string, mode: number): Promise<void> {
  await files.makeFolder(path, { mode }).catch((error: unknown) => {
    if (errnoOf(error) !== EEXIST) throw error;
  });
}
