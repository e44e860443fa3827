import type { JSX, TargetedKeyboardEvent } from "preact";
import type { PtySession } from "./pty-session.ts";
import { terminalNames } from "./settings.ts";

export interface TerminalTabsProperties {
  readonly sessions: readonly PtySession[];
  readonly active: PtySession | undefined;
  readonly onChoose: (session: PtySession) => void;
  readonly onClose: (session: PtySession) => void;
}

/** Left and right go from one to the next, Delete closes. */
export function TerminalTabs({ sessions, active, onChoose, onClose }: TerminalTabsProperties): JSX.Element | null {
  if (sessions.length === 0) return null;
  const key = (event: TargetedKeyboardEvent<HTMLElement>, index: number): void => {
    if (event.key === "Delete") {
      const session = sessions[index];
      if (session !== undefined) onClose(session);
      return;
    }
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (step === undefined) return;
    event.preventDefault();
    const next = sessions.at((index + step) % sessions.length);
    if (next !== undefined) onChoose(next);
    const tabs = event.currentTarget.parentElement?.children;
    (tabs?.[(index + step + sessions.length) % sessions.length] as HTMLElement | undefined)?.focus();
  };
  return (
    <div class="terminal-tabs" role="tablist" aria-label="Terminals">
      {sessions.map((session, index) => (
        <button
          key={session.id}
          type="button"
          role="tab"
          class={`terminal-tab terminal-is-${session.state.value.is}`}
          aria-selected={session === active}
          tabIndex={session === active ? 0 : -1}
          onClick={() => onChoose(session)}
          onKeyDown={(event) => key(event, index)}
        >
          {terminalNames.value[session.id] ?? "Terminal"}
        </button>
      ))}
    </div>
  );
}
