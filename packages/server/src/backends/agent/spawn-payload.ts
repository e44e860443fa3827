import { SandboxerError } from "@sandboxer/protocol";
import type { ExecCommand } from "../backend.ts";
import type { Account } from "./accounts.ts";
import { PayloadWriter } from "./payload.ts";

const SpawnFlag = { pty: 1, noStdin: 2, groups: 4, gainsRights: 8 } as const;

/** The agent's request to start a process. */
export function spawnPayload(
  command: ExecCommand & { readonly workingFolder: string; readonly env: Readonly<Record<string, string>> },
  { uid, gid, groups }: Account,
  gainsRights: boolean,
): PayloadWriter {
  const environment = Object.entries(command.env);
  // An agent of an earlier release knows neither groups nor root, so it gets them only if they are needed.
  const hasGroups = uid === 0 || groups.length > 0;
  const flags =
    (command.pty === undefined ? 0 : SpawnFlag.pty) |
    (hasGroups ? SpawnFlag.groups : 0) |
    (gainsRights ? SpawnFlag.gainsRights : 0);
  const payload = new PayloadWriter()
    .u8(flags)
    .u16(command.pty?.rows ?? 0)
    .u16(command.pty?.columns ?? 0);
  payload.u32(uid).u32(gid).string(command.key).string(command.workingFolder);
  payload.u32(command.argv.length);
  for (const argument of command.argv) payload.string(withoutNul(argument));
  payload.u32(environment.length);
  for (const [name, value] of environment) payload.string(withoutNul(`${name}=${value}`));
  return hasGroups ? putGroups(payload, groups) : payload;
}

export function putGroups(payload: PayloadWriter, groups: readonly number[]): PayloadWriter {
  payload.u32(groups.length);
  for (const group of groups) payload.u32(group);
  return payload;
}

function withoutNul(value: string): string {
  if (value.includes("\0")) throw new SandboxerError("bad_request", "An argument or variable cannot contain NUL.");
  return value;
}
