import type { SandboxRecord } from "@sandboxer/client";
import { networkText } from "@sandboxer/protocol/network-text";
import type { ComponentChildren, JSX } from "preact";
import { labelsDialog, renameDialog } from "../../../dialogs/sandbox-dialogs.ts";
import { formatSeconds } from "../../../format/duration.ts";
import { labelWords, shortId } from "../../../format/names.ts";
import { Link } from "../../../router.tsx";
import { may } from "../../../session.ts";
import { Age } from "../../../ui/age.tsx";
import { Button } from "../../../ui/button.tsx";
import { Facts } from "../../../ui/facts.tsx";
import { sandboxPath } from "../tabs.tsx";
import { Addresses } from "./addresses.tsx";
import { Reachable } from "./reachable.tsx";
import { SavedStates } from "./saved-states.tsx";
import { Times } from "./times.tsx";
import { TokenOnce } from "./token-once.tsx";
import "./facts.css";

/** The sandbox's settings, owner and lifetime. */
export function FactsTab({ record }: { readonly record: SandboxRecord }): JSX.Element {
  return (
    <div class="facts-tab">
      <TokenOnce sandboxId={record.id} />
      <Card title="Identity">
        <Facts
          facts={[
            ["Id", <code>{record.id}</code>],
            [
              "Name",
              <Changeable value={record.name ?? "none"} what="name" onChange={() => renameDialog.open(record)} />,
            ],
            [
              "Labels",
              <Changeable
                value={<span>{labelWords(record.labels)}</span>}
                what="labels"
                onChange={() => labelsDialog.open(record)}
              />,
            ],
            ["Key", record.key ?? "none"],
            ["Created", <Age time={record.createdAt} />],
            ["Created from", <Origin record={record} />],
            ["Spec hash", record.specHash === null ? "none" : <code>{record.specHash}</code>],
          ]}
        />
      </Card>
      <Card title="Configuration">
        <Facts
          facts={[
            ["Backend", record.backend],
            ["Chosen because", record.placement?.reason ?? "unknown"],
            ...(record.placement?.passedOver ?? []).map(
              ({ backend, reason }) => [`Not on ${backend}`, reason] as const,
            ),
            ["Image", record.image ?? "the backend's default"],
            ["User", record.user ?? "the image's default"],
            ["Profile", record.profile ?? "none"],
            ["Network", networkText(record.network)],
            ...limits(record),
            ["Requires servers with", labelWords(record.affinity?.require)],
            ["Prefers servers with", labelWords(record.affinity?.prefer)],
            ["Checkpoints", yesNo(record.flags.enableCheckpoint)],
            ["Checkpoint on idle", yesNo(record.flags.enableIdleTimeoutAutoCheckpoint)],
            ["Handoff", yesNo(record.flags.enableSandboxHandoff)],
            ["When the last client disconnects", record.flags.onDisconnect === "keep" ? "keeps running" : "paused"],
            ...Object.entries(record.details),
          ]}
        />
      </Card>
      <Card title="Lease">
        <Facts
          facts={[
            ["Owner", record.owner === null ? "none" : <code>{record.owner.instanceId}</code>],
            ["Location", whereOf(record)],
            ["Address", record.owner?.url ?? "unknown"],
            ["Epoch", record.epoch ?? "none"],
            ["Frozen", record.frozen ? "yes: its server cannot renew its lease" : "no"],
          ]}
        />
        <Reachable record={record} />
      </Card>
      <Card title="Saved states">
        <SavedStates record={record} />
      </Card>
      <Card title="Time">
        <Times record={record} />
      </Card>
      <Card title="Connect">
        <Addresses record={record} />
      </Card>
    </div>
  );
}

function Card({ title, children }: { readonly title: string; readonly children: ComponentChildren }): JSX.Element {
  return (
    <section class="card" aria-label={title}>
      <h2>{title}</h2>
      {children}
    </section>
  );
}

interface ChangeableProperties {
  readonly value: ComponentChildren;
  readonly what: string;
  readonly onChange: () => void;
}

function Changeable({ value, what, onChange }: ChangeableProperties): JSX.Element {
  return (
    <span class="row">
      {value}
      {may("use") ? (
        <Button label={`Change the ${what}`} onClick={onChange}>
          Change
        </Button>
      ) : null}
    </span>
  );
}

function Origin({ record: { origin } }: { readonly record: SandboxRecord }): JSX.Element {
  const { sandboxId, snapshotId } = origin;
  if (sandboxId === null && snapshotId === null) return <>scratch</>;
  return (
    <>
      {snapshotId === null ? (
        "the state of "
      ) : (
        <Link to={`/lineage?focus=${encodeURIComponent(snapshotId)}`}>a snapshot</Link>
      )}
      {snapshotId === null || sandboxId === null ? "" : " of "}
      {sandboxId === null ? null : <Link to={sandboxPath(sandboxId)}>{shortId(sandboxId)}</Link>}
    </>
  );
}

function limits({ resources, idleTimeout }: SandboxRecord): [string, string][] {
  const { cpus, memoryMb, diskMb, processes } = resources;
  const shown = (value: number | undefined, unit = ""): string =>
    value === undefined ? "the backend's default" : `${value}${unit}`;
  return [
    ["CPUs", shown(cpus)],
    ["Memory", shown(memoryMb, " MB")],
    ["Disk", shown(diskMb, " MB")],
    ["Processes", shown(processes)],
    ["Idle timeout", idleTimeout === 0 ? "none" : formatSeconds(idleTimeout)],
  ];
}

function whereOf({ owner, state }: SandboxRecord): string {
  if (owner !== null) return owner.here ? "this server" : "another server";
  return state === "unreachable" ? "unknown" : "in the store";
}

function yesNo(value: boolean): string {
  return value ? "yes" : "no";
}
