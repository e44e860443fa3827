import type { SandboxNetworkRecord } from "@sandboxer/protocol";
import { networkText } from "@sandboxer/protocol/network-text";
import { defineGroup } from "../define-command.ts";
import { network } from "../options/parse.ts";
import { formatBytes } from "../output/bytes.ts";
import { formatFields, formatTable, visible } from "../output/table.ts";
import { sandboxId } from "../targets/sandbox.ts";

const POLICY =
  "A policy is none, open, or domains, addresses and CIDRs with commas between them, each with an optional :port. An entry\n" +
  "with ! is denied; with only such entries, everything else is allowed.";

export const networkCommand = defineGroup(
  [
    "sandboxer network set web open",
    "sandboxer network set web 'pypi.org,*.pythonhosted.org:443'",
    "sandboxer network log web",
  ],
  {
    show: {
      summary: "Show the network policy of a sandbox and its traffic.",
      arguments: "<sandbox>",
      examples: [
        "sandboxer network show web",
        "sandboxer network show 3f2a9c01",
        "sandboxer network show web --json | jq .policy",
      ],
      async run(run) {
        const client = await run.client();
        const id = await sandboxId(client, run.argument(0));
        run.print(await client.call("sandboxNetwork", { params: { id } }), formatNetwork);
      },
    },
    set: {
      summary: "Change the network policy of a sandbox. Connections that it forbids are closed.",
      arguments: "<sandbox> <policy>",
      details: `${POLICY}\nA program that is already running keeps its environment, so it may not know the proxy.`,
      examples: [
        "sandboxer network set web open",
        "sandboxer network set web 'github.com:443,!gist.github.com'",
        "sandboxer network set web none",
      ],
      async run(run) {
        const policy = network(run.argument(1));
        const client = await run.client();
        const id = await sandboxId(client, run.argument(0));
        const updated = await client.call("updateSandbox", { params: { id }, body: { network: policy } });
        run.print(updated, (record) => `${networkText(record.network)}\n`);
      },
    },
    log: {
      summary: "List the connections that the network policy refused.",
      arguments: "<sandbox>",
      details: "Shows what the server has recorded since it started, the newest first.",
      examples: [
        "sandboxer network log web",
        "sandboxer network log 3f2a9c01",
        "sandboxer network log web --json | jq -r '.refused[].name'",
      ],
      async run(run) {
        const client = await run.client();
        const id = await sandboxId(client, run.argument(0));
        const answer = await client.call("sandboxNetwork", { params: { id } });
        run.print(answer, formatRefused);
        if (answer.refused.length === 0) run.say("No connection was refused.");
      },
    },
  },
);

function formatNetwork(answer: SandboxNetworkRecord): string {
  const bytes = (count: number | null): string | null => (count === null ? null : formatBytes(count));
  return formatFields({
    policy: networkText(answer.policy),
    way: answer.way,
    "open connections": answer.open_connections,
    sent: bytes(answer.sent_bytes),
    received: bytes(answer.received_bytes),
    refused: answer.refused_total,
  });
}

function formatRefused({ refused }: SandboxNetworkRecord): string {
  const rows = refused.map(({ last_at, name, port, address, rule, count }) => [
    last_at,
    `${visible(name)}:${port}`,
    address ?? "-",
    String(count),
    visible(rule),
  ]);
  return rows.length === 0 ? "" : formatTable([["TIME", "DESTINATION", "ADDRESS", "COUNT", "RULE"], ...rows]);
}
