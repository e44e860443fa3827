import type { SandboxRecord } from "@sandboxer/client";
import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { onEvent } from "../../live/events.ts";
import { tell } from "../../ui/toasts.tsx";
import { moves, noteMove, settleMove } from "./moves.ts";

/** Says that the sandbox is on its way to another server, and then that it has arrived. */
export function MoveBanner({ record }: { readonly record: SandboxRecord }): JSX.Element {
  useEffect(() => onEvent(noteMove), []);
  const instance = record.owner?.instanceId;
  const last = useRef(instance);
  useEffect(() => {
    settleMove(record);
    if (instance === undefined || instance === last.current) return;
    if (last.current !== undefined) tell(`It runs at ${instance} now.`);
    last.current = instance;
  }, [record]);
  const move = moves.value.get(record.id);
  return (
    <div role="status" aria-live="polite">
      {move === undefined ? null : <p class="banner banner-info">{movingText(move.to)}</p>}
    </div>
  );
}

export function movingText(to: string | undefined): string {
  return to === undefined ? "It is moving to another instance …" : `Moving to instance ${to} …`;
}
