import { Sandbox, type ListeningPort, type SandboxerError } from "@sandboxer/client";
import type { JSX, TargetedMouseEvent } from "preact";
import { useMemo, useState } from "preact/hooks";
import { usePolled } from "../../../live/use-polled.ts";
import { asError, client, may } from "../../../session.ts";
import { ErrorBox } from "../../../ui/error-box.tsx";
import { TableRegion } from "../../../ui/table-region.tsx";

const EVERY_MS = 3_000;

/** The ports on which programs inside listen, as links. */
export function PortTable({ sandboxId }: { readonly sandboxId: string }): JSX.Element {
  const sandbox = useMemo(() => Sandbox.attach(sandboxId, { client, autoResume: false }), [sandboxId]);
  const { value, error } = usePolled(sandboxId, EVERY_MS, async (signal) => (await sandbox).ports({ signal }));
  const [refused, setRefused] = useState<SandboxerError | undefined>(undefined);
  const open = async (port: number): Promise<void> => {
    setRefused(undefined);
    // Opened at once: browsers block windows that open after a wait.
    const tab = window.open("about:blank");
    if (tab !== null) tab.opener = null;
    try {
      const { url } = await (await sandbox).portUrl(port);
      if (tab === null) location.assign(url);
      else tab.location.replace(url);
    } catch (thrown) {
      tab?.close();
      setRefused(asError(thrown));
    }
  };
  return (
    <>
      {error === undefined ? null : <ErrorBox error={error} />}
      {refused === undefined ? null : <ErrorBox error={refused} />}
      {value?.length === 0 ? (
        <p class="hint">No program listens on a port. Start a web server inside, and it appears here.</p>
      ) : null}
      {value === undefined || value.length === 0 ? null : (
        <TableRegion label="Ports" columns={["Port", "Address inside", "Process", "Access"]}>
          {value.map((listening) => (
            <PortRow key={listening.port} listening={listening} onOpen={open} />
          ))}
        </TableRegion>
      )}
    </>
  );
}

interface PortRowProperties {
  readonly listening: ListeningPort;
  readonly onOpen: (port: number) => Promise<void>;
}

/** A private port is opened with a signed link, made when it is clicked: the page's own session does not count there. */
function PortRow({ listening, onOpen }: PortRowProperties): JSX.Element {
  const { port, address, process, url } = listening;
  const follow = (event: TargetedMouseEvent<HTMLAnchorElement>): void => {
    if (listening.public || !may("use")) return;
    event.preventDefault();
    void onOpen(port);
  };
  return (
    <tr>
      <td>
        <a href={url} target="_blank" rel="noreferrer" onClick={follow}>
          {port}
        </a>
      </td>
      <td class="mono">{address}</td>
      <td class="mono">{process === null ? "" : `${process.pid} ${process.command.slice(0, 60)}`}</td>
      <td>{listening.public ? "anyone" : "private: a key, a token or a signed link"}</td>
    </tr>
  );
}
