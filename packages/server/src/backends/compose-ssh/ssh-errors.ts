import { SandboxerError } from "@sandboxer/protocol";
import type { ComposePlacement } from "./placement.ts";

interface Reason {
  readonly pattern: RegExp;
  readonly says: string;
  readonly hint: (target: string, placement: ComposePlacement) => string;
}

const logIn = (target: string): string =>
  `Make sure that \`ssh -o BatchMode=yes ${target} true\` works for the server's user.`;

/** ssh's own messages, most specific first. */
const REASONS: readonly Reason[] = [
  {
    pattern: /REMOTE HOST IDENTIFICATION HAS CHANGED|host key for .* has changed/i,
    says: "presents a host key that differs from the known one",
    hint: () =>
      "Find out why first: this may be a man-in-the-middle attack. If the change is expected, replace the key in the known hosts.",
  },
  {
    pattern: /Host key verification failed|No .* host key is known/i,
    says: "has a host key that this machine does not know",
    hint: (_, { host, port, known_hosts_file: file }) =>
      `Check the key, then add it: ssh-keyscan ${port === undefined ? "" : `-p ${port} `}${host} >> ${file ?? "~/.ssh/known_hosts"}`,
  },
  {
    pattern: /Permission denied \(|Too many authentication failures|no such identity|Load key/i,
    says: "accepts none of this machine's ssh keys",
    hint: (target) =>
      `Add the public key to ~/.ssh/authorized_keys there, or name the key with placement.identity_file. ${logIn(target)}`,
  },
  {
    pattern: /Connection refused/i,
    says: "refuses the connection",
    hint: () => "Start its ssh server, or correct placement.port.",
  },
  {
    pattern: /Could not resolve hostname/i,
    says: "cannot be resolved",
    hint: () => "Correct placement.host, or check DNS.",
  },
  {
    pattern: /timed out|No route to host|Network is unreachable/i,
    says: "cannot be reached",
    hint: () => "Check the network and the firewalls between the two machines.",
  },
];

/** Exit code 255 is ssh's own: there was no connection, or it was lost. */
export function connectionError(placement: ComposePlacement, stderr: string): SandboxerError {
  const target = targetOf(placement);
  const reason = REASONS.find(({ pattern }) => pattern.test(stderr));
  const said = stderr.trim().split("\n").at(-1)?.trim() ?? "";
  if (reason !== undefined) {
    return new SandboxerError("backend_unavailable", `The host ${target} ${reason.says}.`, {
      hint: reason.hint(target, placement),
      details: { host: placement.host, connected: false, ssh: said },
    });
  }
  return new SandboxerError(
    "backend_unavailable",
    `The connection to ${target} was lost${said === "" ? "" : `: ${said}`}.`,
    {
      hint: `Try again. ${logIn(target)}`,
      details: { host: placement.host },
    },
  );
}

export function targetOf({ host, user, port }: ComposePlacement): string {
  return `${user === undefined ? "" : `${user}@`}${host}${port === undefined ? "" : ` -p ${port}`}`;
}
