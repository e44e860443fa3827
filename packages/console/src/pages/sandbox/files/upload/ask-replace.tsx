import type { JSX } from "preact";
import { Button } from "../../../../ui/button.tsx";
import { Dialog } from "../../../../ui/dialog.tsx";
import { FileName } from "../file-name.tsx";
import { startUpload } from "./upload-batch.ts";
import type { UploadItem } from "./gather.ts";

export interface ReplaceQuestion {
  readonly target: string;
  readonly items: readonly UploadItem[];
  readonly existing: ReadonlySet<UploadItem>;
}

interface AskReplaceProperties {
  readonly sandboxId: string;
  readonly question: ReplaceQuestion;
  readonly onClose: () => void;
}

const SHOWN = 12;

/** Asks before existing files are replaced. */
export function AskReplace({ sandboxId, question, onClose }: AskReplaceProperties): JSX.Element {
  const { target, items, existing } = question;
  const others = items.filter((item) => !existing.has(item));
  const start = (chosen: readonly UploadItem[]): void => {
    onClose();
    startUpload(sandboxId, target, chosen);
  };
  return (
    <Dialog title={existing.size === 1 ? "File already exists" : "Files already exist"} onClose={onClose}>
      <div class="stack">
        <p>
          {existing.size} of {items.length} would replace existing files:
        </p>
        <ul class="upload-existing">
          {[...existing].slice(0, SHOWN).map(({ path }) => (
            <li>
              <FileName name={path} />
            </li>
          ))}
          {existing.size > SHOWN ? <li>and {existing.size - SHOWN} more</li> : null}
        </ul>
        <div class="row dialog-buttons">
          <Button onClick={onClose}>Cancel</Button>
          {others.length === 0 ? null : <Button onClick={() => start(others)}>Upload the other {others.length}</Button>}
          <Button kind="danger" onClick={() => start(items)}>
            Replace {existing.size === 1 ? "it" : `all ${existing.size}`}
          </Button>
        </div>
      </div>
    </Dialog>
  );
}
