import { formatKinds } from "./format.ts";
import { provenance } from "./provenance.ts";
import type { Results } from "./results.ts";

export function renderRequests(results: Results): string {
  const { requests } = results;
  const stores = [...new Set(requests.map(({ store }) => store))];
  const operations = [...new Set(requests.map(({ operation }) => operation))];
  const countOf = (operation: string, store: string): string => {
    const found = requests.find((each) => each.operation === operation && each.store === store);
    return found === undefined ? "–" : formatKinds(found.byKind);
  };
  return [
    "## Requests to the store",
    "",
    "What each operation asks of the store, all servers together, without what a server asks for anyway, which is the last row.",
    "On buckets these are HTTP requests, counted by a proxy in front of the real server; on a directory they are calls to the",
    "store, without the probe at the start. A conditional write is one that fails if somebody else wrote meanwhile; a look",
    "asks for the size only. Images are small here: on buckets larger ones take one write for each 16 MiB. The reads of a",
    "handoff grow with the time it takes: whoever waits looks four times in a second. Lease time 15 s.",
    "",
    ...provenance(results),
    "",
    `| | ${stores.join(" | ")} |`,
    `|---|${stores.map(() => "---|").join("")}`,
    ...operations.map((operation) => {
      return `| ${operation} | ${stores.map((store) => countOf(operation, store)).join(" | ")} |`;
    }),
    "",
  ].join("\n");
}
