import { formatRatio, formatSummary } from "./format.ts";
import { phasesRow } from "./markdown.ts";
import { provenance } from "./provenance.ts";
import type { Results } from "./results.ts";

export function renderHandoffs(results: Results): string {
  const { handoffs } = results;
  return [
    "## Handoff",
    "",
    "Two servers on one machine and one store; a program in the sandbox holds the memory, another prints every 20 ms. A client",
    "attaches at the server that does not have it. Until RUNNING, and the longest time in which nobody got a line. Beside it",
    "what moving the same sandbox takes without servers: `runsc checkpoint`, one plain copy of the bytes on the same disk,",
    "`runsc restore`. A handoff copies twice, through the store, hashes, syncs, and is heard of after half a second on average.",
    "MinIO and fake-gcs-server run on the same cores. The fake one hashes all it has at each part of an upload, so that large ones",
    "take it long, and has no limit of one write per second to a name: its figures say nothing of Google's.",
    "",
    ...provenance(results),
    "",
    "| | sandboxer | raw runsc | ratio |",
    "|---|---|---|---|",
    ...handoffs.map((each) => {
      const [ours, raw] = [each.ours, each.raw].map(({ summary }) => formatSummary(summary, each.unit));
      return `| ${each.title} | ${ours} | ${raw} | ${formatRatio(each)} |`;
    }),
    "",
    "Where the time goes: save, pack and publish are the owner's, and part of the newcomer's claim.",
    "",
    "| | sandboxer, ms | raw runsc, ms |",
    "|---|---|---|",
    ...handoffs.flatMap(phasesRow),
    "",
  ].join("\n");
}
