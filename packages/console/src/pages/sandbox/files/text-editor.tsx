import { SandboxerError, type FileEntry } from "@sandboxer/client";
import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { fileSpellings } from "../../../actions/file-actions.ts";
import { formatBytes } from "../../../format/bytes.ts";
import { asError } from "../../../session.ts";
import { Button } from "../../../ui/button.tsx";
import { CopyAs } from "../../../ui/copy-as.tsx";
import { ErrorBox } from "../../../ui/error-box.tsx";
import { tell } from "../../../ui/toasts.tsx";
import { lineEnds } from "./content.ts";
import { draftOf, dropDraft, keepDraft } from "./drafts.ts";
import { noteChange, stat, write, type Found } from "./file-calls.ts";

interface TextEditorProperties {
  readonly sandboxId: string;
  readonly found: Found;
  /** The current content in the sandbox. */
  readonly text: string;
  readonly onClose: () => void;
}

/** A conflict at the save: the current file, or that it was deleted. */
type Conflict = { readonly now: FileEntry | undefined };

export function TextEditor({ sandboxId, found, text: saved, onClose }: TextEditorProperties): JSX.Element {
  const { path } = found;
  const [draft, setDraft] = useState(() => draftOf(sandboxId, path) ?? { text: saved, base: found.entry });
  const [busy, setBusy] = useState(false);
  const [conflict, setConflict] = useState<Conflict>();
  const [error, setError] = useState<SandboxerError>();
  const ends = lineEnds(saved);
  const change = (text: string): void => setDraft({ ...draft, text });
  const dirty = draft.text !== saved.replaceAll(/\r\n?/g, "\n") && draft.text !== saved;
  useEffect(() => {
    if (dirty) keepDraft(sandboxId, path, draft);
    else dropDraft(sandboxId, path);
  }, [draft, dirty]);

  const save = async (anyway: boolean): Promise<void> => {
    setBusy(true);
    setError(undefined);
    try {
      const now = anyway ? undefined : await look(sandboxId, path);
      if (!anyway && !isSame(now, draft.base)) return setConflict({ now });
      await write(sandboxId, path, ends === "crlf" ? draft.text.replaceAll(/\r?\n/g, "\r\n") : draft.text);
      dropDraft(sandboxId, path);
      tell("Saved");
      noteChange();
      onClose();
    } catch (thrown) {
      setError(asError(thrown));
    } finally {
      setBusy(false);
    }
  };
  const discard = (): void => {
    dropDraft(sandboxId, path);
    if (conflict !== undefined) noteChange();
    onClose();
  };
  return (
    <form
      class="stack"
      onSubmit={(event) => {
        event.preventDefault();
        void save(false);
      }}
    >
      {ends === "mixed" ? (
        <p class="banner banner-warn">The file mixes line endings. Saving makes them all the same.</p>
      ) : null}
      <textarea
        class="file-editor mono"
        aria-label="Content"
        spellcheck={false}
        autoComplete="off"
        rows={24}
        value={draft.text}
        onInput={(event) => change(event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key !== "s" || !(event.ctrlKey || event.metaKey)) return;
          event.preventDefault();
          void save(false);
        }}
      />
      {error === undefined ? null : <ErrorBox error={error} />}
      {conflict === undefined ? (
        <div class="row">
          <Button type="submit" kind="primary" busy={busy} disabled={!dirty}>
            Save
          </Button>
          <Button onClick={discard}>{dirty ? "Discard the changes" : "Close the editor"}</Button>
          <CopyAs what="Write the file" spellings={() => fileSpellings.write(sandboxId, path)} />
          <span class="hint">{dirty ? "Not saved yet." : ""}</span>
        </div>
      ) : (
        <div class="error-box stack" role="alert">
          <strong>Not saved: {changeText(conflict, draft.base)}</strong>
          <div class="row">
            <Button kind="danger" busy={busy} onClick={() => void save(true)}>
              {conflict.now === undefined ? "Create it again with my version" : "Overwrite it with my version"}
            </Button>
            {conflict.now === undefined ? null : <Button onClick={discard}>Discard my version</Button>}
            <Button onClick={() => setConflict(undefined)}>Keep editing</Button>
          </div>
        </div>
      )}
    </form>
  );
}

async function look(sandboxId: string, path: string): Promise<FileEntry | undefined> {
  try {
    return await stat(sandboxId, path);
  } catch (thrown) {
    if (thrown instanceof SandboxerError && thrown.code === "file_not_found") return undefined;
    throw thrown;
  }
}

function isSame(now: FileEntry | undefined, base: FileEntry): boolean {
  return now !== undefined && now.modifiedAt === base.modifiedAt && now.sizeBytes === base.sizeBytes;
}

function changeText({ now }: Conflict, base: FileEntry): string {
  if (now === undefined) return "the file was deleted meanwhile.";
  const when = new Date(now.modifiedAt).toLocaleTimeString();
  return `the file was changed meanwhile, at ${when}. It has ${formatBytes(now.sizeBytes)}; it had ${formatBytes(base.sizeBytes)}.`;
}
