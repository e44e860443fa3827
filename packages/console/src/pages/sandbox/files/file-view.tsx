import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { fileSpellings } from "../../../actions/file-actions.ts";
import { formatBytes } from "../../../format/bytes.ts";
import { useLoaded } from "../../../live/use-loaded.ts";
import { Link, navigate } from "../../../router.tsx";
import { may } from "../../../session.ts";
import { Age } from "../../../ui/age.tsx";
import { Button } from "../../../ui/button.tsx";
import { CopyAs } from "../../../ui/copy-as.tsx";
import { ErrorBox } from "../../../ui/error-box.tsx";
import { downloadAddress, filesAddress } from "./addresses.ts";
import { draftOf, dropDraft, moveDraft } from "./drafts.ts";
import { EntryDialog, type EntryRequest } from "./entry-menu.tsx";
import type { Found } from "./file-calls.ts";
import { FileName } from "./file-name.tsx";
import { HexView } from "./hex-view.tsx";
import { ImageView } from "./image-view.tsx";
import { nameOf, parentOf } from "./paths.ts";
import { readContent } from "./read-content.ts";
import { RemoveEntryDialog } from "./remove-entry-dialog.tsx";
import { RenameEntryDialog } from "./rename-entry-dialog.tsx";
import { modeText } from "./sort-entries.ts";
import { TextEditor } from "./text-editor.tsx";
import { TextView } from "./text-view.tsx";
import { plainName } from "./visible-name.ts";

interface FileViewProperties {
  readonly sandboxId: string;
  /** The requested entry: perhaps a link. */
  readonly path: string;
  readonly found: Found;
}

/** One file: its facts and its content. */
export function FileView({ sandboxId, path, found }: FileViewProperties): JSX.Element {
  const [request, setRequest] = useState<EntryRequest>();
  const { entry, link } = found;
  const named = { ...(link ?? entry), name: nameOf(path) };
  const close = (): void => setRequest(undefined);
  const common = { sandboxId, folder: parentOf(path), entry: named, onClose: close };
  return (
    <article class="card file stack" aria-label={`File ${plainName(named.name)}`}>
      <header class="row">
        <h3 class="file-path">
          <FileName name={named.name} />
        </h3>
        <span class="hint">
          {formatBytes(entry.sizeBytes)} · <span class="mono">{modeText(entry.mode)}</span> · {entry.uid}:{entry.gid} ·
          changed <Age time={entry.modifiedAt} /> ago
          {link === undefined ? null : (
            <>
              {" "}
              · link to <FileName name={link.linkTarget ?? ""} />
            </>
          )}
        </span>
      </header>
      <div class="row" role="toolbar" aria-label="File">
        {entry.kind === "other" ? null : (
          <>
            <a class="button button-plain" href={downloadAddress(sandboxId, path, "file")} download="">
              Download
            </a>
            <CopyAs what="Download the file" spellings={() => fileSpellings.read(sandboxId, path)} />
          </>
        )}
        {may("use") ? (
          <>
            <Button onClick={() => setRequest({ what: "rename", entry: named })}>Rename …</Button>
            <Button kind="danger" onClick={() => setRequest({ what: "remove", entry: named })}>
              Delete …
            </Button>
          </>
        ) : null}
        <Link to={filesAddress(sandboxId, parentOf(path))}>Open folder</Link>
      </div>
      {entry.kind === "file" ? (
        <FileContent sandboxId={sandboxId} found={found} />
      ) : (
        <p>This is a socket, a pipe or a device, so there is nothing to show.</p>
      )}
      {request?.what === "rename" ? (
        <RenameEntryDialog
          {...common}
          onRenamed={(to) => {
            if (link === undefined) moveDraft(sandboxId, path, to);
            navigate(filesAddress(sandboxId, to), { replace: true });
          }}
        />
      ) : null}
      {request?.what === "remove" ? (
        <RemoveEntryDialog
          {...common}
          onRemoved={() => {
            if (link === undefined) dropDraft(sandboxId, path);
            navigate(filesAddress(sandboxId, parentOf(path)), { replace: true });
          }}
        />
      ) : null}
      {request?.what === "copy as" ? <EntryDialog {...common} request={request} /> : null}
    </article>
  );
}

function FileContent({ sandboxId, found }: { readonly sandboxId: string; readonly found: Found }): JSX.Element {
  const { entry, path } = found;
  const { value, error, reload } = useLoaded(
    (signal) => readContent(sandboxId, path, entry.sizeBytes, signal),
    [sandboxId, path, entry.modifiedAt, entry.sizeBytes],
  );
  const [hex, setHex] = useState(false);
  const [editing, setEditing] = useState(draftOf(sandboxId, path) !== undefined);
  if (error !== undefined) {
    return (
      <ErrorBox error={error}>
        <Button onClick={reload}>Try again</Button>
      </ErrorBox>
    );
  }
  if (value === undefined) return <p class="page-note">Loading …</p>;
  if (editing && value.kind === "text" && may("use")) {
    return <TextEditor sandboxId={sandboxId} found={found} text={value.text} onClose={() => setEditing(false)} />;
  }
  const shownHex = hex || value.kind === "binary";
  return (
    <>
      <div class="row">
        {value.kind === "text" && value.whole && may("use") ? (
          <Button kind="primary" onClick={() => setEditing(true)}>
            Edit
          </Button>
        ) : null}
        {value.kind === "binary" ? (
          <span class="hint">Not a text file; showing bytes.</span>
        ) : (
          <Button pressed={hex} onClick={() => setHex(!hex)}>
            Show bytes
          </Button>
        )}
      </div>
      {shownHex ? <HexView sandboxId={sandboxId} path={path} sizeBytes={entry.sizeBytes} /> : null}
      {!shownHex && value.kind === "text" ? <TextView text={value.text} whole={value.whole} /> : null}
      {!shownHex && value.kind === "image" ? <ImageView name={nameOf(path)} image={value} /> : null}
    </>
  );
}
