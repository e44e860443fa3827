import { Sandbox, SandboxerError } from "@sandboxer/client";
import { client } from "../../../session.ts";
import { patternOf } from "./visible-name.ts";

/**
 * Takes a folder, a pattern and the new path. The pattern is expanded byte by byte, and must match exactly one name
 * beyond ASCII.
 */
const SCRIPT = String.raw`cd -- "$1" || exit 1
pattern=$2
to=$3
IFS=
set --
for name in $pattern; do
  case $name in
    *[!\ -~]*) if [ -e "./$name" ] || [ -L "./$name" ]; then set -- "$@" "$name"; fi ;;
  esac
done
[ $# -eq 1 ] || exit 9
exec mv -T -- "./$1" "$to"`;

/**
 * Renames an entry whose name is not UTF-8. No API call can express such a name, but a shell inside can find it by the
 * characters around it.
 */
export async function renameBroken(sandboxId: string, folder: string, name: string, to: string): Promise<void> {
  const sandbox = await Sandbox.attach(sandboxId, { client, autoResume: false });
  const { exitCode, stderr } = await sandbox.exec(["sh", "-c", SCRIPT, "sh", folder, patternOf(name), to], {
    env: { LC_ALL: "C" },
  });
  if (exitCode === 0) return;
  throw new SandboxerError(
    "bad_request",
    exitCode === 9
      ? "Several names look like this one, or it no longer exists."
      : `The file was not renamed. ${stderr.trim()}`,
    { hint: "Rename it in a terminal of the sandbox." },
  );
}
