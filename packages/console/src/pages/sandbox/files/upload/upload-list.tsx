import type { JSX } from "preact";
import { formatBytes } from "../../../../format/bytes.ts";
import { Button } from "../../../../ui/button.tsx";
import { FileName } from "../file-name.tsx";
import { plainName } from "../visible-name.ts";
import { dismissUpload, startUpload, uploadsOf, type UploadBatch } from "./upload-batch.ts";

const SHOWN_FAILURES = 20;

export function UploadList({ sandboxId }: { readonly sandboxId: string }): JSX.Element {
  return (
    <>
      {uploadsOf(sandboxId).map((batch) => (
        <Upload batch={batch} />
      ))}
    </>
  );
}

function Upload({ batch }: { readonly batch: UploadBatch }): JSX.Element {
  const { items, target, totalBytes } = batch;
  const { done, doneBytes, failures, state } = batch.state.value;
  const running = state === "running";
  const percent =
    totalBytes === 0 ? Math.round((done / items.length) * 100) : Math.floor((doneBytes / totalBytes) * 100);
  return (
    <section class="card upload stack" aria-label={`Upload to ${plainName(target)}`}>
      <div class="row">
        <span class="upload-text" role="status">
          {running ? "Uploading" : state === "ended" ? "Uploaded" : "Stopped"}: {done} of {items.length}
          {failures.length === 0 ? "" : `, ${failures.length} failed`} to <FileName name={target} />
        </span>
        <span class="hint">
          {formatBytes(doneBytes)} of {formatBytes(totalBytes)}
        </span>
        {running ? (
          <Button onClick={() => batch.stop()}>Stop the upload</Button>
        ) : (
          <Button kind="quiet" label="Dismiss the upload" onClick={() => dismissUpload(batch)}>
            ✕
          </Button>
        )}
      </div>
      {running ? <progress aria-label="Uploaded" max={100} value={percent} /> : null}
      {failures.length === 0 ? null : (
        <div class="error-box" role="alert">
          <ul class="upload-failures">
            {failures.slice(0, SHOWN_FAILURES).map(({ item, error }) => (
              <li>
                <FileName name={item.path} />: {error.message} <code>{error.code}</code>{" "}
                <span class="error-hint">{error.hint}</span>
              </li>
            ))}
          </ul>
          {failures.length > SHOWN_FAILURES ? <p>And {failures.length - SHOWN_FAILURES} more.</p> : null}
          {running ? null : (
            <Button
              onClick={() => {
                dismissUpload(batch);
                startUpload(
                  batch.sandboxId,
                  target,
                  failures.map(({ item }) => item),
                );
              }}
            >
              Try these again
            </Button>
          )}
        </div>
      )}
    </section>
  );
}
