import type { Answer, fromWire } from "@sandboxer/client/transport";
import type { JSX } from "preact";
import { Age } from "../../../ui/age.tsx";
import { TableRegion } from "../../../ui/table-region.tsx";
import { FileName } from "../files/file-name.tsx";

type Refused = ReturnType<typeof fromWire<Answer<"sandboxNetwork">>>["refused"];

/** Newest first. Programs inside choose the names. */
export function RefusedTable({ refused }: { readonly refused: Refused }): JSX.Element {
  if (refused.length === 0) {
    return <p>No connection was refused. If the policy forbids a connection, it appears here with the rule.</p>;
  }
  return (
    <TableRegion label="Refused connections" columns={["Destination", "Address", "Rule", "Count", "Last"]}>
      {refused.map(({ name, port, address, rule, count, lastAt }) => (
        <tr key={JSON.stringify([name, port, rule])}>
          <td class="mono network-name">
            <FileName name={name} />:{port}
          </td>
          <td class="mono">{address ?? "not resolved"}</td>
          <td class="network-name">
            <FileName name={rule} />
          </td>
          <td>{count}</td>
          <td>
            <Age time={lastAt} /> ago
          </td>
        </tr>
      ))}
    </TableRegion>
  );
}
