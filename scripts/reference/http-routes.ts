import { ROUTES, type Route } from "@sandboxer/protocol";

/** Every route of the OpenAPI document, by tag. Both come from the same table. */
export function httpRoutes(): string {
  const routes: readonly (readonly [string, Route])[] = Object.entries(ROUTES);
  const byTag = Map.groupBy(routes, ([, { tag }]) => tag);
  return [...byTag].map(([tag, rows]) => [`## ${tag}`, "", ...HEADING, ...rows.map(row)].join("\n")).join("\n\n");
}

const HEADING = ["| call | operation | scope | headers | what it does |", "|---|---|---|---|---|"];

function row([name, route]: readonly [string, Route]): string {
  const headers = [
    route.idempotent === true || route.rememberedBySandbox === true ? "`Idempotency-Key`" : "",
    route.fenced === true ? "`If-Sandbox-Epoch`" : "",
    route.operation === undefined ? "" : "`Prefer`",
  ].filter(Boolean);
  const call = `\`${route.method} ${route.path}${queryOf(route)}\``;
  return `| ${call} | \`${name}\` | ${route.scope} | ${headers.join(", ")} | ${route.summary.replaceAll("|", "\\|")} |`;
}

function queryOf({ query }: Route): string {
  const names = Object.keys(query?.shape ?? {});
  return names.length === 0 ? "" : `?${names.map((name) => `${name}=`).join("&")}`;
}
