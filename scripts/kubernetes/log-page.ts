import { execFileSync } from "node:child_process";
import { readFile, writeFile } from "node:fs/promises";
import { cpus, release, totalmem } from "node:os";
import { join } from "node:path";
import type { Outcome } from "./outcome.ts";
import { KUBERNETES_VERSION } from "./programs.ts";

const ROOT = join(import.meta.dirname, "../..");
const PAGE = join(ROOT, "docs/reference/kubernetes-runs.md");
const HEADING = "## Last run\n";

/** Puts the outcome in the place of the last one. */
export async function writeLog(
  { steps, failure }: Outcome,
  facts: { readonly backend: string; readonly load: number },
): Promise<void> {
  const page = await readFile(PAGE, "utf8");
  const commit = execFileSync("git", ["-C", ROOT, "rev-parse", "--short", "HEAD"], { encoding: "utf8" }).trim();
  const machine = `${cpus().length} cores, ${Math.round(totalmem() / 2 ** 30)} GiB, Linux ${release()}`;
  const lines = [
    `Run on ${new Date().toISOString().slice(0, 10)}, at commit ${commit}: Kubernetes ${KUBERNETES_VERSION}, backend ${facts.backend}, ${machine}, load ${Math.round(facts.load)}.`,
    "",
    failure === undefined ? "Everything passed." : `Failed: ${failure.split("\n")[0] ?? ""}`,
    "",
    "| step | seconds | what happened |",
    "|---|---|---|",
    ...steps.map(({ name, seconds, text }) => `| ${name} | ${seconds} | ${text.replaceAll("|", "\\|")} |`),
    "",
  ];
  const end = page.indexOf(HEADING) + HEADING.length;
  await writeFile(PAGE, page.slice(0, end) + lines.join("\n"));
}
