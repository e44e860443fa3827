import type { ProcessRecord } from "@sandboxer/client";
import type { JSX } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import { query, setQuery } from "../../../router.tsx";
import { ErrorBox } from "../../../ui/error-box.tsx";
import { OutputView } from "../output-view.tsx";
import { OutputTail } from "./output-tail.ts";

/** Its output from any offset that is still buffered. The URL has the offset, so that a link shows the same. */
export function ProcessOutput(properties: {
  readonly sandboxId: string;
  readonly process: ProcessRecord;
}): JSX.Element {
  const { sandboxId, process } = properties;
  const asked = Number(query.value.get("offset") ?? 0);
  const from = Number.isSafeInteger(asked) && asked >= 0 ? asked : 0;
  const [follow, setFollow] = useState(true);
  const tail = useMemo(() => new OutputTail(sandboxId, process.id, from), [sandboxId, process.id, from]);
  useEffect(() => {
    const end = new AbortController();
    void tail.run(follow, end.signal);
    return () => end.abort();
  }, [tail, follow]);
  const { parts, begin, end, droppedBytes, over, error } = tail.state.value;
  return (
    <div class="stack">
      <div class="row">
        <label for="process-offset">From offset</label>
        <input
          id="process-offset"
          class="process-offset"
          type="number"
          min={0}
          value={from}
          onChange={(event) => setQuery({ offset: event.currentTarget.value })}
        />
        <label class="process-follow">
          <input type="checkbox" checked={follow} onChange={(event) => setFollow(event.currentTarget.checked)} /> Follow
        </label>
        <span class="hint" role="status">
          {begin === undefined ? "reading …" : `bytes ${begin} to ${end}${over ? ", the end" : ""}`}
        </span>
      </div>
      {begin !== undefined && begin > from ? <p class="hint">Output before byte {begin} was dropped.</p> : null}
      {error === undefined ? null : <ErrorBox error={error} />}
      {parts.length === 0 && begin !== undefined ? (
        <p class="hint">{over ? "There is no output after this offset." : "No output yet."}</p>
      ) : (
        <OutputView
          label={`Output of process ${process.pid}`}
          parts={parts}
          droppedBytes={droppedBytes}
          follow={follow}
        />
      )}
    </div>
  );
}
