import type { JSX } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { SandboxerError } from "@sandboxer/client";
import { Link, path, query, setQuery } from "../../../router.tsx";
import { asError, may } from "../../../session.ts";
import { processSpellings } from "../../../actions/process-actions.ts";
import { Button } from "../../../ui/button.tsx";
import { CopyAs } from "../../../ui/copy-as.tsx";
import { ErrorBox } from "../../../ui/error-box.tsx";
import { tellError } from "../../../ui/toasts.tsx";
import { sandboxPath, type SandboxTabProperties } from "../tabs.tsx";
import { CloseTerminal } from "./close-terminal.tsx";
import type { PtySession } from "./pty-session.ts";
import { RenameTerminal } from "./rename-terminal.tsx";
import { fontSize, terminalNames } from "./settings.ts";
import { TerminalList } from "./terminal-list.ts";
import { TerminalPane } from "./terminal-pane.tsx";
import { TerminalTabs } from "./terminal-tabs.tsx";
import { TerminalTools } from "./terminal-tools.tsx";
import { measureTerminal, type XtermScreen } from "./xterm-screen.ts";
import "./terminal.css";

export function Terminals({ record }: SandboxTabProperties): JSX.Element {
  if (may("use")) return <OwnTerminals record={record} />;
  return (
    <p class="card">
      Your key is read-only, so you cannot open a terminal. You can read{" "}
      <Link to={sandboxPath(record.id, "processes")}>the processes and their output</Link>.
    </p>
  );
}

function OwnTerminals({ record }: SandboxTabProperties): JSX.Element {
  const list = useMemo(() => new TerminalList(record.id), [record.id]);
  const place = useRef<HTMLDivElement>(null);
  const screens = useRef(new Map<string, XtermScreen>());
  const [error, setError] = useState<SandboxerError>();
  const [busy, setBusy] = useState(true);
  const [asked, setAsked] = useState<{ readonly what: "close" | "rename"; readonly session: PtySession }>();
  const running = record.state === "running";
  const open = list.open.value;
  const [chosen, setChosen] = useState(query.peek().get("pty"));
  const active = open.find(({ id }) => id === chosen) ?? open.at(-1);
  /** The URL says which one is in front, so that a reload shows the same. It may belong to another tab by now. */
  const choose = (id: string | undefined): void => {
    setChosen(id ?? null);
    if (path.peek() === sandboxPath(record.id)) setQuery({ pty: id });
  };

  const attempt = async (work: () => Promise<void>): Promise<void> => {
    setBusy(true);
    setError(undefined);
    try {
      await work();
    } catch (thrown) {
      setError(asError(thrown));
    } finally {
      setBusy(false);
    }
  };
  const start = async (): Promise<void> => {
    const { current } = place;
    const size = current === null ? undefined : measureTerminal(current, fontSize.peek());
    choose(await list.start(size));
  };
  const add = (): Promise<void> => attempt(start);
  const load = (): Promise<void> =>
    attempt(async () => {
      // A first terminal opens automatically.
      if (!(await list.load())) await start();
    });
  useEffect(() => {
    if (running && list.open.peek().length === 0) void load();
  }, [list, running]);

  const close = (session: PtySession, how: "leave" | "end"): void => {
    setAsked(undefined);
    screens.current.delete(session.id);
    choose(undefined);
    if (how === "leave") list.leave(session);
    else list.end(session).catch((thrown: unknown) => tellError("The terminal was not ended", thrown));
  };
  const askToClose = (session: PtySession): void => {
    const { is } = session.state.peek();
    if (is === "ended" || is === "gone") close(session, is === "ended" ? "end" : "leave");
    else setAsked({ what: "close", session });
  };
  const focusTab = (): void => document.querySelector<HTMLElement>('.terminal-tab[aria-selected="true"]')?.focus();

  return (
    <div class="terminals" ref={place}>
      <div class="terminal-bar">
        <TerminalTabs sessions={open} active={active} onChoose={({ id }) => choose(id)} onClose={askToClose} />
        <Button label="New terminal" kind="quiet" busy={busy} disabled={!running} onClick={() => void add()}>
          +
        </Button>
        <CopyAs what="New terminal" spellings={() => processSpellings.shell(record.id)} />
        {list.left.value.map((id) => (
          <Button
            key={id}
            kind="quiet"
            title="Running, not shown"
            onClick={() => void attempt(async () => list.show(id).then(() => choose(id)))}
          >
            Show {terminalNames.value[id] ?? "another"}
          </Button>
        ))}
        {active === undefined ? null : (
          <TerminalTools
            sandboxId={record.id}
            session={active}
            screen={() => screens.current.get(active.id)}
            onRename={() => setAsked({ what: "rename", session: active })}
            onClose={() => askToClose(active)}
          />
        )}
      </div>
      {error === undefined ? null : (
        <ErrorBox error={error}>
          <Button onClick={() => void load()}>Try again</Button>
        </ErrorBox>
      )}
      {open.length === 0 && error === undefined ? <NoTerminal busy={busy} running={running} onNew={add} /> : null}
      {open.map((session) => (
        <TerminalPane
          key={session.id}
          session={session}
          sandboxId={record.id}
          name={terminalNames.value[session.id] ?? "Terminal"}
          shown={session === active}
          onScreen={(screen) => screens.current.set(session.id, screen)}
          onLeave={focusTab}
        />
      ))}
      {asked?.what === "close" ? (
        <CloseTerminal
          name={terminalNames.value[asked.session.id] ?? "Terminal"}
          onCancel={() => setAsked(undefined)}
          onClose={(how) => close(asked.session, how)}
        />
      ) : null}
      {asked?.what === "rename" ? <RenameTerminal id={asked.session.id} onClose={() => setAsked(undefined)} /> : null}
    </div>
  );
}

function NoTerminal(properties: {
  readonly busy: boolean;
  readonly running: boolean;
  readonly onNew: () => Promise<void>;
}): JSX.Element | null {
  if (!properties.running) return <p class="hint">The sandbox is not running yet. The terminal opens when it does.</p>;
  if (properties.busy) return <p class="page-note">Opening a terminal …</p>;
  return (
    <p class="row">
      No terminal is open.
      <Button kind="primary" onClick={() => void properties.onNew()}>
        Open a terminal
      </Button>
    </p>
  );
}
