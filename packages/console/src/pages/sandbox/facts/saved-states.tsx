import type { SandboxRecord } from "@sandboxer/client";
import type { JSX } from "preact";
import { retentionDialog, verifyDialog, type SandboxDialog } from "../../../dialogs/sandbox-dialogs.ts";
import { encryptionWords, lossWords } from "../../../format/badges.ts";
import { formatBytes } from "../../../format/bytes.ts";
import { keepWords } from "../../../format/retention.ts";
import { damagedSandboxes } from "../../../live/damage.ts";
import { Link } from "../../../router.tsx";
import { may } from "../../../session.ts";
import { Age } from "../../../ui/age.tsx";
import { Button } from "../../../ui/button.tsx";
import { Facts } from "../../../ui/facts.tsx";

const RESTART_WORDS = {
  always: "another server resumes it",
  never: "it stays paused until it is resumed",
} as const;

/** Its saved states: possible loss, retention and integrity. */
export function SavedStates({ record }: { readonly record: SandboxRecord }): JSX.Element {
  const { durability, encryption, retention, flags } = record;
  const damage = damagedSandboxes.value.get(record.id);
  const dialogs = [verifyDialog, retentionDialog].filter((dialog) => isOffered(dialog, record));
  return (
    <>
      <Facts
        facts={[
          ["Last checkpoint", <Checkpoint record={record} />],
          ["Possible loss", flags.enableCheckpoint ? lossWords(durability.maxLoss) : "everything"],
          ["If its server dies", RESTART_WORDS[record.restart]],
          ["At risk", durability.atRisk === null ? "no" : <AtRisk atRisk={durability.atRisk} />],
          ["Damaged", damage === undefined ? "none known" : damage],
          ["Encrypted with", encryption === null ? "the server's default" : encryptionWords(encryption)],
          ["Checkpoint retention", keepWords(retention?.checkpoints)],
          ["Snapshot retention", keepWords(retention?.snapshots)],
          ["Snapshots", <Link to={`/lineage?focus=${encodeURIComponent(record.id)}`}>in the lineage</Link>],
        ]}
      />
      {dialogs.length === 0 ? null : (
        <div class="row facts-buttons">
          {dialogs.map((dialog) => (
            <Button key={dialog.name} onClick={() => dialog.open(record)}>
              {dialog.name}
            </Button>
          ))}
        </div>
      )}
    </>
  );
}

function isOffered(dialog: SandboxDialog, record: SandboxRecord): boolean {
  return may(dialog.scope) && dialog.applies(record);
}

function AtRisk({
  atRisk: { since, reason },
}: {
  readonly atRisk: NonNullable<SandboxRecord["durability"]["atRisk"]>;
}): JSX.Element {
  return (
    <>
      for <Age time={since} />: {reason}
    </>
  );
}

function Checkpoint({ record: { checkpoint } }: { readonly record: SandboxRecord }): JSX.Element {
  if (checkpoint === null) return <>none</>;
  return (
    <>
      <code>{checkpoint.name}</code>, {formatBytes(checkpoint.sizeBytes)}, <Age time={checkpoint.createdAt} /> ago
    </>
  );
}
