import { SandboxerError } from "@sandboxer/protocol";
import type { SandboxFiles } from "../../backends/backend.ts";
import type { LiveSandbox } from "../live-sandbox.ts";

export interface HomeRequest {
  /** The account's name. One without an entry in `/etc/passwd` gets one. */
  readonly name: string;
  readonly uid: number;
  readonly gid: number;
  readonly home: string;
  readonly mode: number;
}

const PASSWD = "/etc/passwd";
/** Images may contain anything. */
const MAX_BYTES = 1024 * 1024;

/**
 * Gives users of a fresh sandbox a home where their client expects it, whatever the image has: an entry in
 * `/etc/passwd`, and the folder. Needs no root inside. A backend without files of root keeps the homes that it has.
 */
export async function giveHomes(
  _context: unknown,
  { handle: { rawFiles: files } }: LiveSandbox,
  wanted: readonly HomeRequest[],
): Promise<void> {
  if (files === undefined) return;
  const before = await readPasswd(files);
  const after = wanted.reduce(withHome, before);
  if (after !== before) await files.write(PASSWD, Buffer.from(after, "latin1"), { mode: 0o644 });
  for (const { home, mode, uid, gid } of wanted) {
    await files.makeFolder(home, { parents: true });
    await files.set(home, { mode, owner: { uid, gid } });
  }
}

/** In front of others with the same number, so that programs inside find this name for it. */
export function withHome(passwd: string, { name, uid, gid, home }: HomeRequest): string {
  const lines = passwd.split("\n");
  const entry = lines.find((line) => line.startsWith(`${name}:`));
  if (entry === undefined) return `${name}:*:${uid}:${gid}:${name}:${home}:/bin/sh\n${passwd}`;
  const [, password = "*", ownUid = uid, ownGid = gid, comment = name, , shell = "/bin/sh"] = entry.split(":");
  const changed = [name, password, ownUid, ownGid, comment, home, shell].join(":");
  return lines.map((line) => (line === entry ? changed : line)).join("\n");
}

async function readPasswd(files: SandboxFiles): Promise<string> {
  const exists = await files.stat(PASSWD).then(
    () => true,
    () => false,
  );
  if (!exists) return "";
  const chunks = await Array.fromAsync(files.read(PASSWD, { length: MAX_BYTES + 1 }));
  const content = Buffer.concat(chunks);
  if (content.length > MAX_BYTES) throw new SandboxerError("too_large", `The image's ${PASSWD} is larger than 1 MiB.`);
  return content.toString("latin1");
}
