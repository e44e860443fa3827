import type { SandboxRecord } from "@sandboxer/client";
import type { JSX } from "preact";
import { sandboxBadges } from "../../format/badges.ts";
import { sandboxTitle, shortId } from "../../format/names.ts";
import { damagedSandboxes } from "../../live/damage.ts";
import { Link } from "../../router.tsx";
import { Badges } from "../../ui/badges.tsx";
import { copyText } from "../../ui/copy-text.ts";
import { StateChip } from "../../ui/state-chip.tsx";
import { DurabilityBanner } from "./durability-banner.tsx";
import { MoveBanner } from "./move-banner.tsx";
import { SandboxActions } from "./sandbox-actions.tsx";

export function SandboxHeader({ record }: { readonly record: SandboxRecord }): JSX.Element {
  const { id, state, frozen, owner, epoch } = record;
  return (
    <header class="sandbox-header">
      <div class="sandbox-title">
        <Link to="/" class="sandbox-up" title="All sandboxes">
          Sandboxes
        </Link>
        <span aria-hidden="true">/</span>
        <h1>{sandboxTitle(record)}</h1>
        <span role="status">
          <StateChip state={state} frozen={frozen} />
        </span>
        <Badges badges={sandboxBadges(record, damagedSandboxes.value.get(id))} />
      </div>
      <p class="sandbox-facts">
        <button type="button" class="sandbox-id mono" title="Copy the id" onClick={() => void copyText(id, "the id")}>
          {id}
        </button>
        <span>{record.backend}</span>
        <span title={owner?.instanceId}>{ownerText(record)}</span>
        {epoch === null ? null : <span title="Increases with every change of owner">epoch {epoch}</span>}
        {frozen ? <span class="sandbox-frozen">frozen, because its server cannot renew its lease</span> : null}
      </p>
      <SandboxActions record={record} />
      <DurabilityBanner record={record} />
      <MoveBanner record={record} />
    </header>
  );
}

function ownerText({ owner }: SandboxRecord): string {
  if (owner === null) return "not running";
  return `runs on ${owner.here ? "this server," : "server"} ${shortId(owner.instanceId)}`;
}
