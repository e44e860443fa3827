/** Messages of programs that need root: apt and dpkg, apk, dnf, and sudo on an engine without set-user-ID programs. */
const NEEDS_ROOT =
  /are you root\?|(?:must|has to|needs to) be (?:run|executed) (?:as|by|under)(?: the)? (?:root|superuser)|requires? (?:root|superuser) privileges|unable to lock database: permission denied|effective uid is not 0/i;

/** The hint for a failed program that needs root. `tail`: the end of its output. */
export function rootHint(sandboxId: string, tail: string): string | null {
  if (!NEEDS_ROOT.test(tail)) return null;
  return `The program needs root. Run it with \`sandboxer exec --user root ${sandboxId} -- COMMAND\`, or create the sandbox with --user root.`;
}
