import { errnoOf } from "../../agent/agent-error.ts";
import type { AgentFiles } from "../../agent/agent-files.ts";
import { NAMESERVER } from "./addresses.ts";

const RESOLVER_FILE = "/etc/resolv.conf";
const ENOENT = 2;

/** This server's nameserver replaces the root filesystem's file (often a dangling link). */
export async function writeResolverFile(files: AgentFiles): Promise<void> {
  await files.remove(RESOLVER_FILE).catch((error: unknown) => {
    if (errnoOf(error) !== ENOENT) throw error;
  });
  await files.makeFolder("/etc", { parents: true });
  await files.write(RESOLVER_FILE, Buffer.from(`nameserver ${NAMESERVER}\n`), { mode: 0o644 });
}
