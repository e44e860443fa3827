import type { IntegrityReport, ScrubStatus } from "@sandboxer/protocol";
import { ERRORS } from "@sandboxer/protocol/errors";
import { formatBytes } from "./bytes.ts";
import { formatFields, formatTable, visible } from "./table.ts";

/** Lets scripts skip the report: the exit code of a damaged image, or of a missing key. */
export function exitCodeOf({ ok, images }: IntegrityReport): number {
  if (!ok) return ERRORS.image_damaged.exitCode;
  return images.whole === 0 && images.locked > 0 ? ERRORS.permission_denied.exitCode : 0;
}

export function formatReport(report: IntegrityReport): string {
  const { problems, damaged_blocks: blocks, missing_packs: packs } = report;
  return [formatSum(report), formatProblems(problems), formatBlocks(blocks), formatPacks(packs)].join("");
}

function formatSum({ images, blocks, bytes, unnamed_packs: unnamed }: IntegrityReport): string {
  const counts = Object.entries(images).filter(([state, count]) => count > 0 || state === "whole");
  const shown = counts.map(([state, count]) => `${count} ${state === "whole" ? "intact" : state}`).join(", ");
  const rest =
    unnamed === null || unnamed.count === 0
      ? ""
      : `${unnamed.count} ${unnamed.count === 1 ? "pack" : "packs"} (${formatBytes(unnamed.bytes)}) that nothing references.\n`;
  return `Saved states: ${shown}. ${blocks} blocks read, ${formatBytes(bytes)}.\n${rest}`;
}

function formatProblems(problems: IntegrityReport["problems"]): string {
  if (problems.length === 0) return "";
  const rows = problems.map(({ image, state, current, problem }) => [
    image,
    current ? `${state}, in use` : state,
    visible(problem),
  ]);
  return `\n${formatTable([["saved state", "status", "reason"], ...rows])}`;
}

function formatBlocks(blocks: IntegrityReport["damaged_blocks"]): string {
  if (blocks.length === 0) return "";
  const rows = blocks.map(({ pack, offset, size_bytes, problem, images }) => [
    pack ?? images[0] ?? "",
    `${offset}`,
    formatBytes(size_bytes),
    `${images.length}`,
    problem,
  ]);
  return `\n${formatTable([["damaged block in", "at byte", "size", "affects", "reason"], ...rows])}`;
}

function formatPacks(packs: IntegrityReport["missing_packs"]): string {
  if (packs.length === 0) return "";
  return `\n${formatTable([["missing pack", "affects"], ...packs.map(({ pack, images }) => [pack, `${images.length}`])])}`;
}

export function formatScrubStatus(status: ScrubStatus): string {
  const { running, paused, done_bytes: done, every_seconds: every, rate_mb: rate, last } = status;
  return formatFields({
    state: running ? `running, ${formatBytes(done)} read` : paused ? `stopped after ${formatBytes(done)}` : "idle",
    schedule: every === null ? "never" : `every ${every} seconds`,
    "rate limit": rate === null ? "no limit" : `${rate} MB/s`,
    "last full pass": status.last_full_pass_at ?? "never",
    found: last === null ? null : last.ok ? "nothing" : `${last.problems.length} damaged saved states`,
  });
}
