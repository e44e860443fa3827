import { Sandbox } from "@sandboxer/client";
import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import { formatBytes } from "../../../format/bytes.ts";
import { formatMilliseconds } from "../../../format/duration.ts";
import { usePolled } from "../../../live/use-polled.ts";
import { client } from "../../../session.ts";
import { ErrorBox } from "../../../ui/error-box.tsx";
import { TableRegion } from "../../../ui/table-region.tsx";

const EVERY_MS = 2_000;
/** A sandbox may have thousands; the page shows the first. */
const SHOWN = 500;

/** All processes inside. */
export function ProcessTable({ sandboxId }: { readonly sandboxId: string }): JSX.Element {
  const sandbox = useMemo(() => Sandbox.attach(sandboxId, { client, autoResume: false }), [sandboxId]);
  const { value, error } = usePolled(sandboxId, EVERY_MS, async (signal) => (await sandbox).processTable({ signal }));
  if (value === undefined) {
    return error === undefined ? <p class="page-note">Loading …</p> : <ErrorBox error={error} />;
  }
  return (
    <>
      {error === undefined ? null : <ErrorBox error={error} />}
      {value.length > SHOWN ? (
        <p class="hint">
          The first {SHOWN} of {value.length}.
        </p>
      ) : null}
      <TableRegion label="All processes" columns={["PID", "Parent", "User", "State", "Memory", "CPU", "Command"]}>
        {value.slice(0, SHOWN).map(({ pid, parentPid, uid, state, residentBytes, cpuMs, command }) => (
          <tr key={pid}>
            <td class="mono">{pid}</td>
            <td class="mono">{parentPid}</td>
            <td class="mono">{uid}</td>
            <td>{state}</td>
            <td>{formatBytes(residentBytes)}</td>
            <td>{formatMilliseconds(cpuMs)}</td>
            <td class="process-command mono">{command}</td>
          </tr>
        ))}
      </TableRegion>
    </>
  );
}
