import { Sandbox, type Reachability, type SandboxerError, type SandboxRecord } from "@sandboxer/client";
import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { reachabilitySpellings } from "../../../actions/time-actions.ts";
import { formatMilliseconds } from "../../../format/duration.ts";
import { asError, client } from "../../../session.ts";
import { Button } from "../../../ui/button.tsx";
import { CopyAs } from "../../../ui/copy-as.tsx";
import { ErrorBox } from "../../../ui/error-box.tsx";

/** Asks the sandbox itself whether it answers. */
export function Reachable({ record }: { readonly record: SandboxRecord }): JSX.Element {
  const [busy, setBusy] = useState(false);
  const [answer, setAnswer] = useState<Reachability>();
  const [error, setError] = useState<SandboxerError>();
  const ask = async (): Promise<void> => {
    setBusy(true);
    setError(undefined);
    try {
      setAnswer(await (await Sandbox.attach(record.id, { client, autoResume: false })).reachability());
    } catch (thrown) {
      setAnswer(undefined);
      setError(asError(thrown));
    } finally {
      setBusy(false);
    }
  };
  return (
    <>
      <div class="row facts-buttons">
        <Button busy={busy} onClick={() => void ask()}>
          Check reachability
        </Button>
        <CopyAs what="Check reachability" spellings={() => reachabilitySpellings(record.id)} />
        <span role="status">{answer === undefined ? "" : said(answer)}</span>
      </div>
      {error === undefined ? null : <ErrorBox error={error} />}
    </>
  );
}

function said({ reachable, roundTripMs, summary }: Reachability): string {
  if (!reachable || roundTripMs === null) return summary;
  return `yes, after ${formatMilliseconds(roundTripMs)}`;
}
