import { SandboxerError } from "@sandboxer/protocol";
import type { ExecCommand } from "../backend.ts";
import { PayloadWriter } from "./payload.ts";

const SpawnFlag = { pty: 1, noStdin: 2 } as const;

/** The agent's request to start a process. */
export function spawnPayload(
  command: ExecCommand & { readonly workingFolder: string; readonly env: Readonly<Record<string, string>> },
  user: { readonly uid: number; readonly gid: number },
): PayloadWriter {
  const environment = Object.entries(command.env);
  const payload = new PayloadWriter()
    .u8(command.pty === undefined ? 0 : SpawnFlag.pty)
    .u16(command.pty?.rows ?? 0)
    .u16(command.pty?.columns ?? 0);
  payload.u32(user.uid).u32(user.gid).string(command.key).string(command.workingFolder);
  payload.u32(command.argv.length);
  for (const argument of command.argv) payload.string(withoutNul(argument));
  payload.u32(environment.length);
  for (const [name, value] of environment) payload.string(withoutNul(`${name}=${value}`));
  return payload;
}

function withoutNul(value: string): string {
  if (value.includes("\0")) throw new SandboxerError("bad_request", "An argument or variable cannot contain NUL.");
  return value;
}
