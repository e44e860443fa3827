import type { SandboxRecord } from "@sandboxer/client";
import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { shortId } from "../../format/names.ts";
import { onEvent } from "../../live/events.ts";
import { refreshSandbox } from "../../live/sandboxes.ts";
import { tell } from "../../ui/toasts.tsx";
import { forgetMove, moves, noteMove, settleMove } from "./moves.ts";

/** The target server sends this one no events. */
const LOOK_MS = 500;
/** A longer move has failed: the page shows the record again. */
const PATIENCE_MS = 60_000;

/** Shows that the sandbox is moving to another server, and then that it has arrived. */
export function MoveBanner({ record }: { readonly record: SandboxRecord }): JSX.Element {
  useEffect(() => onEvent(noteMove), []);
  const instance = record.owner?.instanceId;
  const last = useRef(instance);
  useEffect(() => {
    settleMove(record);
    if (instance === undefined || instance === last.current) return;
    if (last.current !== undefined) tell(`The sandbox now runs on ${shortId(instance)}.`);
    last.current = instance;
  }, [record]);
  const to = moves.value.get(record.id);
  useEffect(() => {
    if (to === undefined) return;
    const looking = setInterval(() => void refreshSandbox(record.id), LOOK_MS);
    const patience = setTimeout(() => forgetMove(record.id), PATIENCE_MS);
    return () => {
      clearInterval(looking);
      clearTimeout(patience);
    };
  }, [to, record.id]);
  return (
    <div role="status" aria-live="polite">
      {to === undefined ? null : <p class="banner banner-info">{movingText(to)}</p>}
    </div>
  );
}

export function movingText(to: string): string {
  return `Moving to server ${to} …`;
}
