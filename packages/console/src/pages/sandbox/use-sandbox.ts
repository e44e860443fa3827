import { Sandbox, SandboxerError, type SandboxRecord } from "@sandboxer/client";
import { useEffect, useState } from "preact/hooks";
import { noteSandbox, sandboxes, sandboxesState } from "../../live/sandboxes.ts";
import { asError, client } from "../../session.ts";

interface SandboxLook {
  /** Its current record; for a deleted one, the last known. */
  readonly record: SandboxRecord | undefined;
  /** Why there is none. */
  readonly error: SandboxerError | undefined;
}

/** The server remembers a deleted sandbox for a while. */
const DESTROYED = new SandboxerError("sandbox_destroyed", "The sandbox was deleted.");

/** The sandbox of a page, kept up to date; one that is not in the list is requested, to learn the reason. */
export function useSandbox(id: string): SandboxLook {
  const listed = sandboxes.value.get(id);
  const { loaded } = sandboxesState.value;
  const [last, setLast] = useState<SandboxRecord>();
  const [error, setError] = useState<SandboxerError>();
  const missing = listed === undefined;
  useEffect(() => {
    const end = new AbortController();
    if (missing) void ask(end.signal);
    else setError(undefined);
    return () => end.abort();
  }, [id, missing, loaded]);
  useEffect(() => {
    if (listed !== undefined) setLast(listed);
  }, [listed]);

  async function ask(signal: AbortSignal): Promise<void> {
    try {
      const { record } = await Sandbox.attach(id, { client, signal });
      if (signal.aborted) return;
      if (record.state === "destroyed") setLast(record);
      else noteSandbox(record);
    } catch (thrown) {
      if (!signal.aborted) setError(asError(thrown));
    }
  }

  const record = listed ?? (last?.id === id ? last : undefined);
  if (record?.state === "destroyed") return { record, error: DESTROYED };
  return { record, error: listed === undefined ? error : undefined };
}
