import type { FileEntry } from "@sandboxer/client";
import type { JSX } from "preact";
import { useMemo, useState } from "preact/hooks";
import { fileSpellings } from "../../../actions/file-actions.ts";
import { query, setQuery } from "../../../router.tsx";
import { may } from "../../../session.ts";
import { Button } from "../../../ui/button.tsx";
import { CopyAs } from "../../../ui/copy-as.tsx";
import { tellError } from "../../../ui/toasts.tsx";
import { downloadAddress } from "./addresses.ts";
import { EntryTable } from "./entry-table.tsx";
import { NewEntryDialog } from "./new-entry-dialog.tsx";
import { asOrder, sortEntries } from "./sort-entries.ts";
import { AskReplace, type ReplaceQuestion } from "./upload/ask-replace.tsx";
import { findExisting } from "./upload/find-existing.ts";
import { itemsOfDrop, type UploadItem } from "./upload/gather.ts";
import { UploadButtons } from "./upload/upload-buttons.tsx";
import { startUpload } from "./upload/upload-batch.ts";
import { useDrop } from "./upload/use-drop.ts";

interface FolderViewProperties {
  readonly sandboxId: string;
  readonly path: string;
  /** Its real path, behind links. */
  readonly realPath: string;
  readonly entries: readonly FileEntry[];
}

/** The contents of a folder, and uploads into it. */
export function FolderView({ sandboxId, path, realPath, entries }: FolderViewProperties): JSX.Element {
  const by = asOrder(query.value.get("sort"));
  const descending = query.value.get("order") === "descending";
  const hidden = query.value.get("hidden") === "shown";
  const shown = useMemo(() => sortEntries(entries, { by, descending, hidden }), [entries, by, descending, hidden]);
  const [making, setMaking] = useState<"file" | "folder">();
  const [question, setQuestion] = useState<ReplaceQuestion>();
  const upload = async (gathered: Promise<readonly UploadItem[]>): Promise<void> => {
    try {
      const items = await gathered;
      const existing = await findExisting(sandboxId, path, items);
      if (existing.size === 0) startUpload(sandboxId, path, items);
      else setQuestion({ target: path, items, existing });
    } catch (thrown) {
      tellError("Nothing was uploaded", thrown);
    }
  };
  const acting = may("use");
  const drop = useDrop(acting, (transfer) => void upload(itemsOfDrop(transfer)));
  return (
    <div class={drop.over ? "folder folder-drop" : "folder"} {...drop.handlers}>
      <div class="row" role="toolbar" aria-label="Folder">
        {acting ? (
          <>
            <Button onClick={() => setMaking("file")}>New file</Button>
            <Button onClick={() => setMaking("folder")}>New folder</Button>
            <UploadButtons onChosen={(items) => void upload(Promise.resolve(items))} />
            <CopyAs what="Upload a folder" spellings={() => fileSpellings.upload(sandboxId, path)} />
          </>
        ) : null}
        <a class="button button-plain" href={downloadAddress(sandboxId, realPath, "folder")} download="">
          Download as tar
        </a>
        <CopyAs what="Download the folder" spellings={() => fileSpellings.download(sandboxId, realPath)} />
        <label class="files-check">
          <input
            type="checkbox"
            checked={hidden}
            onChange={(event) => setQuery({ hidden: event.currentTarget.checked ? "shown" : undefined })}
          />{" "}
          Hidden files
        </label>
        <span class="hint" role="status">
          {shown.length === entries.length ? `${entries.length}` : `${shown.length} of ${entries.length}`} entries
        </span>
      </div>
      {shown.length === 0 ? (
        <p class="card">
          {entries.length > 0 ? "All files are hidden." : "The folder is empty."}
          {acting ? " Drop files or folders here, or use the buttons above." : ""}
        </p>
      ) : (
        <EntryTable sandboxId={sandboxId} folder={path} entries={shown} by={by} descending={descending} />
      )}
      {drop.over ? (
        <p class="drop-note" role="status">
          Drop to upload here
        </p>
      ) : null}
      {making === undefined ? null : (
        <NewEntryDialog sandboxId={sandboxId} folder={path} what={making} onClose={() => setMaking(undefined)} />
      )}
      {question === undefined ? null : (
        <AskReplace sandboxId={sandboxId} question={question} onClose={() => setQuestion(undefined)} />
      )}
    </div>
  );
}
