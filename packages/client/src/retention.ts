import type { RetentionPreview, SandboxChange } from "./records.ts";
import type { Caller, CallOptions } from "./wire/call-types.ts";
import { fromWire } from "./wire/naming.ts";

/** The rules of a sandbox as `update` takes them; null: as the server says. */
type Retention = NonNullable<SandboxChange["retention"]>;

/** What rules would do to the saved states of a sandbox; undefined: those that it has. Nothing is changed. */
export async function previewRetention(
  client: Caller,
  id: string,
  retention: Retention | null | undefined,
  options: CallOptions,
): Promise<RetentionPreview> {
  const query =
    retention === undefined
      ? {}
      : { keep_checkpoints: ruleText(retention?.checkpoints), keep_snapshots: ruleText(retention?.snapshots) };
  return fromWire(await client.call("previewRetention", { params: { id }, query }, options));
}

/** As a query has it; a rule that is not said is up to the server. */
function ruleText(keep: Retention["checkpoints"]): string {
  if (keep === undefined) return "server";
  const parts = { last: keep.keepLast, hourly: keep.hourly, daily: keep.daily };
  return Object.entries(parts)
    .flatMap(([word, count]) => (count === undefined ? [] : [`${word}=${count}`]))
    .join(",");
}
