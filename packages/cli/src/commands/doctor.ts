import { Command } from "commander";
import { parseConfig } from "@sandboxer/server/config";
import { storeProblem } from "@sandboxer/server/existing-store";
import { isHealthy, runChecks, type CheckResult } from "@sandboxer/server/setup";
import { asTyped } from "../command-name.ts";
import { withExamples } from "../define-command.ts";
import type { Io } from "../io.ts";
import { formatTable } from "../output/table.ts";
import { addSettingFlags, readSettingFlags } from "../setting-flags.ts";

export function doctorCommand(io: Io, setExitCode: (code: number) => void): Command {
  const command = withExamples(new Command(), [
    "sandboxer doctor",
    "sandboxer doctor --default-store",
    "sandboxer doctor --json | jq -r '.checks[] | select(.state != \"found\") | .name'",
  ])
    .option("--default-store", "use the store that `npm start` uses")
    .option("--json", "print JSON");
  addSettingFlags(command, ["store", "platform", "runscPath", "image", "dataDirectory", "cacheDirectory"]);
  return command.action(async (options: Record<string, unknown>) => {
    const flags = readSettingFlags(options);
    const config = parseConfig({ flags, env: io.env, homeDirectory: io.homeDirectory, serving: false });
    const { cacheDirectory, dataDirectory, searchPath, runscPath, platform, store, image } = config;
    const isFolder = store !== undefined && !/^[a-z0-9]+:\/\//.test(store);
    const found = await runChecks({
      cacheDirectory,
      dataDirectory,
      searchPath,
      runscPath,
      platform,
      store,
      image,
      storeProblem: isFolder ? await storeProblem(store, dataDirectory) : undefined,
    });
    const checks = found.map((check) =>
      check.remedy === undefined ? check : { ...check, remedy: asTyped(check.remedy, io) },
    );
    const ok = isHealthy(checks);
    io.stdout(options["json"] === true ? `${JSON.stringify({ ok, checks })}\n` : formatChecks(checks, ok));
    setExitCode(ok ? 0 : 1);
  });
}

function formatChecks(checks: readonly CheckResult[], ok: boolean): string {
  const rows = checks.map((check) => [mark(check), check.name, check.version ?? "", check.message]);
  const remedies = checks
    .filter((check) => check.state !== "found" && check.remedy !== undefined)
    .map((check) => [`  ${check.name}${check.needed ? "" : " (optional)"}:`, check.remedy ?? ""]);
  const verdict = ok ? "Everything that the server needs is installed." : "Something that the server needs is missing.";
  const advice = remedies.length === 0 ? "" : `\nTo install what is missing:\n${formatTable(remedies)}`;
  return `${formatTable(rows)}${advice}\n${verdict}\n`;
}

function mark(check: CheckResult): string {
  if (check.state === "found") return "✓ found";
  if (check.state === "unknown") return "? unknown";
  return check.needed ? "✗ missing" : "- absent (optional)";
}
