import { fromWire } from "@sandboxer/client/transport";
import { networkText } from "@sandboxer/protocol/network-text";
import type { JSX } from "preact";
import { refusedSpellings } from "../../../actions/network-actions.ts";
import { formatBytes } from "../../../format/bytes.ts";
import { usePolled } from "../../../live/use-polled.ts";
import { client, may } from "../../../session.ts";
import { CopyAs } from "../../../ui/copy-as.tsx";
import { ErrorBox } from "../../../ui/error-box.tsx";
import { Facts } from "../../../ui/facts.tsx";
import type { SandboxTabProperties } from "../tabs.tsx";
import { PolicyForm } from "./policy-form.tsx";
import { RefusedTable } from "./refused-table.tsx";
import "./network.css";

const EVERY_MS = 3_000;

const WAYS = {
  none: "no: it has no network",
  proxy: "yes, through the server's proxy",
  own: "yes, by a network of its own",
} as const;

/** The network policy of a sandbox, its traffic, and the connections that the policy refused. */
export function NetworkTab({ record: { id } }: SandboxTabProperties): JSX.Element {
  const { value, error, again } = usePolled(id, EVERY_MS, async (signal) =>
    fromWire(await client.call("sandboxNetwork", { params: { id } }, { signal })),
  );
  if (value === undefined) {
    return error === undefined ? <p class="page-note">Loading …</p> : <ErrorBox error={error} />;
  }
  const bytes = (count: number | null): string => (count === null ? "unknown" : formatBytes(count));
  return (
    <div class="network">
      {error === undefined ? null : <ErrorBox error={error} />}
      <section class="card" aria-labelledby="network-policy">
        <h2 id="network-policy">Policy</h2>
        <Facts
          facts={[
            ["Policy", <code>{networkText(value.policy)}</code>],
            ["Connected", value.way === null ? "no: it is paused" : WAYS[value.way]],
            ["Open connections", value.openConnections ?? "unknown"],
            ["Sent", bytes(value.sentBytes)],
            ["Received", bytes(value.receivedBytes)],
          ]}
        />
        {may("use") ? <PolicyForm id={id} current={value.policy} onChanged={again} /> : null}
      </section>
      <section class="stack" aria-labelledby="network-refused">
        <header class="row">
          <h2 id="network-refused">Refused connections</h2>
          <span class="hint">{value.refusedTotal === 0 ? "none" : `${value.refusedTotal} in all`}</span>
          <CopyAs what="Refused connections" spellings={() => refusedSpellings(id)} />
        </header>
        <RefusedTable refused={value.refused} />
        <p class="hint">Connections that this server refused since it started. Other servers keep their own list.</p>
      </section>
    </div>
  );
}
