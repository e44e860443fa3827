import type { RetentionPreview, SandboxChange } from "./records.ts";
import type { Caller, CallOptions } from "./wire/call-types.ts";
import { fromWire } from "./wire/naming.ts";

/** The rules of a sandbox for `update`; null: the server's default. */
type Retention = NonNullable<SandboxChange["retention"]>;

/** Previews rules for the saved states of a sandbox; undefined: its current ones. Changes nothing. */
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

/** As a query; a missing rule uses the server's default. */
function ruleText(keep: Retention["checkpoints"]): string {
  if (keep === undefined) return "server";
  const parts = { last: keep.keepLast, hourly: keep.hourly, daily: keep.daily };
  return Object.entries(parts)
    .flatMap(([word, count]) => (count === undefined ? [] : [`${word}=${count}`]))
    .join(",");
}
