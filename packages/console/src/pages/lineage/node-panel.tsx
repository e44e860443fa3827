import type { ComponentChildren, JSX, RefObject } from "preact";
import { encryptionWords, lossWords } from "../../format/badges.ts";
import { formatBytes } from "../../format/bytes.ts";
import { shortId } from "../../format/names.ts";
import { sandboxes } from "../../live/sandboxes.ts";
import { snapshots } from "../../live/snapshots.ts";
import { Link } from "../../router.tsx";
import { Age } from "../../ui/age.tsx";
import { Badges } from "../../ui/badges.tsx";
import { Button } from "../../ui/button.tsx";
import { copyText } from "../../ui/copy-text.ts";
import { StateChip } from "../../ui/state-chip.tsx";
import { itemBadges, itemTitle } from "./describe-item.ts";
import type { LineageItem, LineageNode, SandboxItem, SnapshotItem } from "./forest.ts";
import { SandboxButtons, SnapshotButtons } from "./node-buttons.tsx";

interface PanelProperties {
  readonly node: LineageNode;
  /** The first side of a comparison, if one was marked. */
  readonly compared: LineageItem | undefined;
  readonly heading: RefObject<HTMLHeadingElement | null>;
  readonly onMark: () => void;
  readonly onCompare: () => void;
  readonly onClose: () => void;
}

/** The details of one node, and its actions. */
export function NodePanel(properties: PanelProperties): JSX.Element {
  const { item, children } = properties.node;
  const title = itemTitle(item);
  return (
    <aside class="lineage-panel card stack" aria-label={`${item.kind} ${title}`}>
      <header class="row lineage-panel-header">
        <h2 ref={properties.heading} tabIndex={-1}>
          {title}
        </h2>
        {item.kind === "sandbox" ? <StateChip state={item.record.state} frozen={item.record.frozen} /> : null}
        <Button kind="quiet" label="Close the details" onClick={properties.onClose}>
          ✕
        </Button>
      </header>
      <Badges badges={itemBadges(item)} />
      <dl class="lineage-fields">
        <Field name="Kind">{item.kind === "sandbox" ? "Sandbox" : `Snapshot, ${item.record.mode}`}</Field>
        <Field name="Id">
          <button
            type="button"
            class="link mono"
            title="Copy the id"
            onClick={() => void copyText(item.record.id, "the id")}
          >
            {item.record.id}
          </button>
        </Field>
        <Field name="Backend">{item.record.backend}</Field>
        <Field name="Age">
          <Age time={item.record.createdAt} />
        </Field>
        {item.kind === "snapshot" ? <SnapshotFields item={item} /> : <SandboxFields item={item} />}
        <Field name="Labels">
          <Labels labels={item.record.labels} />
        </Field>
        <Field name="Descendants">{children.length === 0 ? "nothing" : String(children.length)}</Field>
      </dl>
      <div class="row" role="group" aria-label="Actions">
        {item.kind === "sandbox" ? <SandboxButtons item={item} /> : <SnapshotButtons item={item} />}
        <CompareButtons {...properties} />
      </div>
    </aside>
  );
}

function Field({ name, children }: { readonly name: string; readonly children: ComponentChildren }): JSX.Element {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

function SandboxFields({ item: { record } }: { readonly item: SandboxItem }): JSX.Element {
  const { owner, checkpoint, origin, durability, encryption, flags } = record;
  return (
    <>
      {origin.snapshotId === null ? null : (
        <Field name="Created from">
          <LineageLink id={origin.snapshotId} />
        </Field>
      )}
      <Field name="Owner">{owner === null ? "none" : owner.instanceId}</Field>
      <Field name="Checkpoint">{checkpoint === null ? "none" : formatBytes(checkpoint.sizeBytes)}</Field>
      <Field name="Possible loss">{flags.enableCheckpoint ? lossWords(durability.maxLoss) : "everything"}</Field>
      {durability.atRisk === null ? null : (
        <Field name="At risk">
          for <Age time={durability.atRisk.since} />: {durability.atRisk.reason}
        </Field>
      )}
      {encryption == null ? null : <Field name="Encrypted with">{encryptionWords(encryption)}</Field>}
    </>
  );
}

/** A link to another node. Its target may have been deleted, or be known by a name. */
function LineageLink({ id }: { readonly id: string }): JSX.Element {
  const name = snapshots.value.get(id)?.name ?? sandboxes.value.get(id)?.name ?? shortId(id);
  return <Link to={`/lineage?focus=${encodeURIComponent(id)}`}>{name}</Link>;
}

function SnapshotFields({ item: { record } }: { readonly item: SnapshotItem }): JSX.Element {
  const { problem, sizeBytes, reason, proven, unproven, encryption, sandboxes: began } = record;
  return (
    <>
      <Field name="Taken from">
        {sandboxes.value.has(record.sandboxId) ? <LineageLink id={record.sandboxId} /> : "a deleted sandbox"}
      </Field>
      <Field name="Size">{formatBytes(sizeBytes)}</Field>
      <Field name="Taken">{REASONS[reason]}</Field>
      <Field name="Sandboxes created from it">{String(began.length)}</Field>
      <Field name="Kept">{staysText(record)}</Field>
      {encryption == null ? null : <Field name="Encrypted with">{encryptionWords(encryption)}</Field>}
      {proven == null ? null : (
        <Field name="Test restore">
          succeeded <Age time={proven.at} /> ago, on {proven.engine}
        </Field>
      )}
      {unproven == null ? null : <Field name="Test restore">failed: {unproven.reason}</Field>}
      {problem === null ? null : <Field name="Problem">{problem}</Field>}
    </>
  );
}

/** How long it is kept. */
function staysText({ pinned, name }: SnapshotItem["record"]): string {
  if (pinned) return "until it is unpinned";
  return name === null ? "by the retention rule of its sandbox" : "until it is deleted or its name is used again";
}

const REASONS = {
  request: "on request",
  fork: "for a fork",
  named: "over WebSocket, with a name",
  move: "for a move to another backend",
  promote: "before a promotion replaced the state",
} as const;

/** Each isolated, so that right-to-left text does not affect the others. */
function Labels({ labels }: { readonly labels: Readonly<Record<string, string>> }): JSX.Element {
  const shown = Object.entries(labels);
  if (shown.length === 0) return <>none</>;
  return (
    <ul class="lineage-labels">
      {shown.map(([key, value]) => (
        <li key={key}>
          <bdi>{key}</bdi>=<bdi>{value}</bdi>
        </li>
      ))}
    </ul>
  );
}

function CompareButtons({ node: { item }, compared, onMark, onCompare }: PanelProperties): JSX.Element {
  if (compared === undefined || compared.key === item.key) {
    return (
      <Button pressed={compared !== undefined} onClick={onMark}>
        {compared === undefined ? "Compare …" : "Cancel compare"}
      </Button>
    );
  }
  return (
    <Button kind="primary" onClick={onCompare}>
      Compare with {itemTitle(compared)}
    </Button>
  );
}
