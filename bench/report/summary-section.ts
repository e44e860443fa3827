import { allContests, losesTo, meetsAim, ratioTo, type Contest, type Findings } from "../result.ts";
import { formatRatio } from "./format.ts";
import { whyItLoses } from "./reasons.ts";
import { table } from "./tables.ts";

/** Which aims are met, and where the product loses, with the reason. */
export function summarySection(findings: Findings): string[] {
  const contests = allContests(findings);
  return [...aims(contests), ...losses(contests)];
}

function aims(contests: readonly Contest[]): string[] {
  const titles = (met: boolean): string =>
    contests
      .filter((contest) => meetsAim(contest) === met)
      .map(({ title }) => title)
      .join("; ");
  const sentence = (label: string, list: string): string[] => (list === "" ? [] : [`**${label}:** ${list}.`, ""]);
  const sentences = [...sentence("Aims met", titles(true)), ...sentence("Aims not met", titles(false))];
  return sentences.length === 0 ? [] : ["## Aims", "", ...sentences];
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
