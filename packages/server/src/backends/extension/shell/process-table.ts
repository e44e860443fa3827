import { SandboxerError } from "@sandboxer/protocol";
import type { ProcessTableEntry } from "../../backend.ts";
import { runShell, type StartShell } from "./run-shell.ts";

const TICKS_PER_SECOND = 100;
const PAGE_BYTES = 4096;

/**
 * The shell's own pid first, then for each process its stat, its owner and its command line, separated by NUL bytes.
 */
const SCRIPT = `printf '%s\\0' $$
for folder in /proc/[0-9]*; do
  read -r stat < "$folder/stat" || continue
  uid=0
  while read -r name value rest; do [ "$name" = Uid: ] && uid=$value && break; done < "$folder/status" || continue
  printf '\\0\\0%s\\0%s\\0' "$stat" "$uid"
  cat "$folder/cmdline"
done 2>/dev/null
exit 0
`;

/** Every process inside except this shell. */
export async function readProcessTable(start: StartShell): Promise<ProcessTableEntry[]> {
  const { code, stdout, stderr } = await runShell(start, SCRIPT, []);
  if (code !== 0)
    throw new SandboxerError("sandbox_failed", `The processes in the sandbox cannot be listed: ${stderr.trim()}`);
  const [own = "", ...rows] = stdout.toString("utf8").split(/\0{2,}(?=\d+ \()/);
  const shell = Number(own.replaceAll("\0", ""));
  return rows.flatMap(parseRow).filter(({ pid, parentPid }) => pid !== shell && parentPid !== shell);
}

/** The name in parentheses may contain anything, even parentheses. */
function parseRow(row: string): ProcessTableEntry[] {
  const [stat = "", uid = "", ...words] = row.split("\0");
  const match = /^(\d+) \((.*)\) (\S) (.*)$/s.exec(stat);
  if (match === null) return [];
  const fields = (match[4] ?? "").split(" ").map(Number);
  return [
    {
      pid: Number(match[1]),
      parentPid: fields[0] ?? 0,
      uid: Number(uid),
      state: match[3] ?? "",
      residentBytes: (fields[20] ?? 0) * PAGE_BYTES,
      cpuMs: (((fields[10] ?? 0) + (fields[11] ?? 0)) * 1000) / TICKS_PER_SECOND,
      command: words.join(" ").trim() || (match[2] ?? ""),
    },
  ];
}
