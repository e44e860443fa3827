import type { JSX } from "preact";
import { connected } from "../../../live/events.ts";
import { sandboxes } from "../../../live/sandboxes.ts";
import { Button } from "../../../ui/button.tsx";
import { moves } from "../moves.ts";
import { movingText } from "../move-banner.tsx";
import type { PtySession, PtyState } from "./pty-session.ts";

/** The state of a terminal's connection, unless it is just attached. */
export function PtyStatus({
  session,
  sandboxId,
}: {
  readonly session: PtySession;
  readonly sandboxId: string;
}): JSX.Element {
  const said = say(session.state.value, sandboxId);
  return (
    <div role="status" aria-live="polite">
      {said === undefined ? null : (
        <p class={`banner banner-${said.kind}`}>
          <span>{said.text}</span>
          {said.retry === undefined ? null : <Button onClick={() => session.retry()}>{said.retry}</Button>}
        </p>
      )}
    </div>
  );
}

interface Said {
  readonly kind: "info" | "warn" | "danger";
  readonly text: string;
  readonly retry?: string;
}

const LOST: Said = { kind: "warn", text: "The connection is lost. Reconnecting …" };

function say(state: PtyState, sandboxId: string): Said | undefined {
  const to = moves.value.get(sandboxId);
  const asleep = to === undefined && sandboxes.value.get(sandboxId)?.state === "stored";
  switch (state.is) {
    case "attached":
      return undefined;
    case "connecting":
      return { kind: "info", text: "Connecting …" };
    case "moving":
    case "asleep":
      if (!connected.value) return LOST;
      if (asleep) return { kind: "info", text: "The terminal continues when the sandbox is resumed." };
      return {
        kind: "info",
        text: `${to === undefined ? "The sandbox is being saved or moved …" : movingText(to)} Your input is kept until it is back.`,
      };
    case "lost":
      return LOST;
    case "elsewhere":
      return { kind: "warn", text: "This terminal was opened in another window.", retry: "Use it here" };
    case "gone":
      return { kind: "warn", text: "This terminal no longer exists." };
    case "failed":
      return { kind: "danger", text: `${state.error.message} ${state.error.hint}`, retry: "Try again" };
    case "ended": {
      const { exitCode, signal } = state.exit;
      return { kind: "info", text: `Ended ${signal === null ? `with exit code ${exitCode}` : `by ${signal}`}.` };
    }
  }
}
