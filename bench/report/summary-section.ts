import { allContests, losesTo, meetsAim, ratioTo, type Contest, type Findings } from "../result.ts";
import { formatAim, formatRatio } from "./format.ts";
import { whyItLoses } from "./reasons.ts";
import { table } from "./tables.ts";

/** The aims that are met, and the losses of the product, with their reasons. */
export function summarySection(findings: Findings): string[] {
  const contests = allContests(findings);
  return [...aims(contests), ...losses(contests)];
}

function aims(contests: readonly Contest[]): string[] {
  const met = contests.filter((contest) => meetsAim(contest) === true).map(({ title }) => title);
  const missed = contests.filter((contest) => meetsAim(contest) === false).map(missedRow);
  if (met.length + missed.length === 0) return [];
  return [
    "## Aims",
    "",
    ...(met.length === 0 ? [] : [`Met: ${met.join("; ")}.`, ""]),
    ...(missed.length === 0 ? [] : ["Not met:", "", ...table(["", "ratio", "aim", "why"], missed)]),
  ];
}

function missedRow(contest: Contest): string[] {
  const [, second] = contest.sides;
  const ratio = second === undefined ? undefined : ratioTo(contest, second);
  const reached = ratio === undefined ? "–" : formatRatio(ratio);
  return [contest.title, reached, formatAim(contest.aim), whyItLoses(contest, second?.name ?? "")];
}

function losses(contests: readonly Contest[]): string[] {
  const rows = contests.flatMap((contest) =>
    contest.sides.flatMap((side) => {
      const ratio = ratioTo(contest, side);
      const isOurs = contest.sides[0]?.name === "sandboxer";
      if (!isOurs || ratio === undefined || !losesTo(contest, side)) return [];
      return [[contest.title, side.name, formatRatio(ratio), whyItLoses(contest, side.name)]];
    }),
  );
  if (rows.length === 0) return [];
  const intro = "Every row in which sandboxer is worse by more than 5 %:";
  return ["## Where sandboxer loses", "", intro, "", ...table(["", "against", "ratio", "why"], rows)];
}
