import type { SandboxRecord, SandboxerError } from "@sandboxer/client";
import type { JSX } from "preact";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { sandboxTitle } from "../../format/names.ts";
import { runningOperations } from "../../live/operations.ts";
import { Link, subject } from "../../router.tsx";
import { ErrorBox } from "../../ui/error-box.tsx";
import { OperationProgress } from "../../ui/operation-progress.tsx";
import { Asleep } from "./asleep.tsx";
import { SandboxHeader } from "./sandbox-header.tsx";
import { SANDBOX_TABS, sandboxPath, type SandboxTab } from "./tabs.tsx";
import { useSandbox } from "./use-sandbox.ts";
import "./sandbox.css";

/** One sandbox: its header and actions above, one of its tabs below. */
export function SandboxPage({ id, tab }: { readonly id: string; readonly tab: string }): JSX.Element {
  const { record, error } = useSandbox(id);
  useLayoutEffect(() => {
    subject.value = record === undefined ? undefined : sandboxTitle(record);
    return () => (subject.value = undefined);
  }, [record?.name, id]);
  const tabs = useRef<HTMLElement>(null);
  const isShown = record !== undefined;
  // A narrow window has no room for all tabs.
  useEffect(() => {
    const current = tabs.current?.querySelector("[aria-current=page]");
    current?.scrollIntoView({ block: "nearest", inline: "nearest" });
  }, [tab, isShown]);
  if (error !== undefined) return <Gone id={id} record={record} error={error} />;
  if (record === undefined) return <p class="page-note">Loading …</p>;
  return (
    <section class="page sandbox-page">
      <SandboxHeader record={record} />
      <nav class="tabs" aria-label="Sandbox" ref={tabs}>
        {SANDBOX_TABS.map(({ path, title }) => (
          <Link key={path} to={sandboxPath(id, path)} current={path === tab}>
            {title}
          </Link>
        ))}
      </nav>
      <UnderWay id={id} />
      <TabContent record={record} tab={tab} />
    </section>
  );
}

/** Overlaid: short-lived notes must not move what the user is about to click. */
function UnderWay({ id }: { readonly id: string }): JSX.Element {
  const running = runningOperations.value.filter(({ sandboxId }) => sandboxId === id);
  return (
    <div class="sandbox-under-way">
      {running.map((operation) => (
        <div key={operation.id} class="card">
          <OperationProgress operation={operation} />
        </div>
      ))}
    </div>
  );
}

function TabContent({ record, tab }: { readonly record: SandboxRecord; readonly tab: string }): JSX.Element {
  const visited = useRef(new Set<string>());
  const current = SANDBOX_TABS.find(({ path }) => path === tab);
  if (current === undefined) {
    return (
      <p>
        A sandbox has no such page. <Link to={sandboxPath(record.id)}>Open its terminal.</Link>
      </p>
    );
  }
  // An open tab keeps its content; it shows itself that the sandbox is paused.
  const asleep = isAsleep(record) && current.needsRunning && !visited.current.has(tab);
  if (!asleep && current.keep === true) visited.current.add(tab);
  return (
    <>
      {SANDBOX_TABS.filter(({ path }) => visited.current.has(path)).map((kept) => (
        <Kept key={kept.path} tab={kept} record={record} shown={kept === current} />
      ))}
      {asleep ? <Asleep record={record} /> : null}
      {!asleep && current.keep !== true ? <current.Content record={record} /> : null}
    </>
  );
}

function Kept(properties: {
  readonly tab: SandboxTab;
  readonly record: SandboxRecord;
  readonly shown: boolean;
}): JSX.Element {
  const { tab, record, shown } = properties;
  return (
    <div hidden={!shown} class="sandbox-kept">
      {isAsleep(record) ? <Asleep record={record} /> : null}
      <tab.Content record={record} />
    </div>
  );
}

function isAsleep({ state }: SandboxRecord): boolean {
  return state === "stored" || state === "unreachable";
}

function Gone(properties: {
  readonly id: string;
  readonly record: SandboxRecord | undefined;
  readonly error: SandboxerError;
}): JSX.Element {
  const { id, record, error } = properties;
  const known = error.code === "sandbox_not_found" || error.code === "sandbox_destroyed";
  const was = record !== undefined || error.code === "sandbox_destroyed";
  return (
    <section class="page">
      <h1>{record === undefined ? "Sandbox" : sandboxTitle(record)}</h1>
      {known ? (
        <p>
          {was ? "This sandbox was deleted: " : "There is no sandbox with this id: "}
          <code>{id}</code>. {was ? "Its snapshots are kept." : "It may have been deleted a while ago."}
        </p>
      ) : (
        <ErrorBox error={error} />
      )}
      <p class="row">
        <Link to="/">All sandboxes</Link>
        <Link to="/lineage">Snapshots and lineage</Link>
      </p>
    </section>
  );
}
