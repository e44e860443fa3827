import type { SandboxRecord } from "@sandboxer/client";
import type { JSX } from "preact";
import { liveCheckpointAction } from "../../actions/sandbox-actions.ts";
import { verifyDialog } from "../../dialogs/sandbox-dialogs.ts";
import { lossWords } from "../../format/badges.ts";
import { damagedSandboxes } from "../../live/damage.ts";
import { may } from "../../session.ts";
import { Age } from "../../ui/age.tsx";
import { Button } from "../../ui/button.tsx";
import { useAction } from "./use-action.ts";

/** Warns of possible losses while something can still be done. */
export function DurabilityBanner({ record }: { readonly record: SandboxRecord }): JSX.Element {
  const damage = damagedSandboxes.value.get(record.id);
  return (
    <div role="status">
      {record.durability.atRisk === null ? null : <AtRisk record={record} since={record.durability.atRisk} />}
      {damage === undefined ? null : (
        <p class="banner banner-danger">
          <span>
            <strong>Its saved data is damaged:</strong> {damage}
          </span>
          {may(verifyDialog.scope) ? <Button onClick={() => verifyDialog.open(record)}>Verify …</Button> : null}
        </p>
      )}
    </div>
  );
}

interface AtRiskProperties {
  readonly record: SandboxRecord;
  readonly since: NonNullable<SandboxRecord["durability"]["atRisk"]>;
}

function AtRisk({ record, since: { since, reason } }: AtRiskProperties): JSX.Element {
  const { maxLoss, lastSavedAt } = record.durability;
  const { busy, run } = useAction(liveCheckpointAction, record);
  const offered = may(liveCheckpointAction.scope) && liveCheckpointAction.applies(record);
  return (
    <p class="banner banner-warn">
      <span>
        <strong>At risk</strong> for <Age time={since} />: if its server fails now, more than {lossWords(maxLoss)} is
        lost. {lastSavedAt === null ? "Never saved" : <LastSaved time={lastSavedAt} />}: {reason}
      </span>
      {offered ? (
        <Button busy={busy} onClick={() => void run()}>
          Save now
        </Button>
      ) : null}
    </p>
  );
}

function LastSaved({ time }: { readonly time: string }): JSX.Element {
  return (
    <>
      Last saved <Age time={time} /> ago
    </>
  );
}
