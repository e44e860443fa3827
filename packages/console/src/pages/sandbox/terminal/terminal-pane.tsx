import { effect } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { onEvent } from "../../../live/events.ts";
import { shownTheme } from "../../../theme.ts";
import type { PtySession } from "./pty-session.ts";
import { PtyStatus } from "./pty-status.tsx";
import { fontSize, screenReader } from "./settings.ts";
import { XtermScreen } from "./xterm-screen.ts";

export interface TerminalPaneProperties {
  readonly session: PtySession;
  readonly sandboxId: string;
  readonly name: string;
  readonly shown: boolean;
  /** Called with the screen, for the buttons above it. */
  readonly onScreen: (screen: XtermScreen) => void;
  /** The user wants to leave it with the keyboard. */
  readonly onLeave: () => void;
}

export function TerminalPane(properties: TerminalPaneProperties): JSX.Element {
  const { session, sandboxId, name, shown, onScreen, onLeave } = properties;
  const place = useRef<HTMLDivElement>(null);
  const screen = useRef<XtermScreen>(undefined);
  useEffect(() => {
    const element = place.current;
    if (element === null) return;
    const made = new XtermScreen(session, {
      fontSize: fontSize.peek(),
      screenReader: screenReader.peek(),
      onLeave,
    });
    screen.current = made;
    made.open(element);
    onScreen(made);
    const observer = new ResizeObserver(() => made.fitSoon());
    observer.observe(element);
    const stops = [
      effect(() => made.set({ fontSize: fontSize.value, screenReader: screenReader.value })),
      effect(() => made.paint(shownTheme.value)),
      onEvent((event) => {
        if (event.sandboxId === sandboxId && event.type === "sandbox.rewound") session.restart();
      }),
    ];
    void session.run(made);
    return () => {
      for (const stop of stops) stop();
      observer.disconnect();
      session.leave();
      made.dispose();
    };
  }, [session]);
  useEffect(() => {
    if (!shown) return;
    screen.current?.fit();
    screen.current?.focus();
  }, [shown]);
  return (
    <div class="terminal-pane" role="tabpanel" aria-label={name} hidden={!shown}>
      <PtyStatus session={session} sandboxId={sandboxId} />
      <div class="terminal-place" ref={place} />
    </div>
  );
}
