import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { fileSpellings } from "../../../actions/file-actions.ts";
import { Link, navigate } from "../../../router.tsx";
import { Button } from "../../../ui/button.tsx";
import { CopyAs } from "../../../ui/copy-as.tsx";
import { copyText } from "../../../ui/copy-text.ts";
import { filesAddress } from "./addresses.ts";
import { FileName } from "./file-name.tsx";
import { crumbsOf, normalizePath } from "./paths.ts";

interface PathBarProperties {
  readonly sandboxId: string;
  readonly path: string;
  /** Whether it is an existing folder. */
  readonly isFolder: boolean;
  readonly loading: boolean;
  readonly onReload: () => void;
}

/** The current path: every parent folder, and a field for any other path. */
export function PathBar({ sandboxId, path, isFolder, loading, onReload }: PathBarProperties): JSX.Element {
  const [text, setText] = useState(path);
  const crumbs = crumbsOf(path);
  return (
    <div class="path-bar">
      <nav aria-label="Path">
        <ol class="crumbs">
          {crumbs.map((crumb) => (
            <li key={crumb.path}>
              <Link to={filesAddress(sandboxId, crumb.path)} current={crumb.path === path}>
                <FileName name={crumb.name} />
              </Link>
            </li>
          ))}
        </ol>
      </nav>
      <form
        class="path-form"
        onSubmit={(event) => {
          event.preventDefault();
          navigate(filesAddress(sandboxId, normalizePath(text, path)));
        }}
      >
        <input
          class="mono"
          aria-label="Go to a path"
          autoComplete="off"
          spellcheck={false}
          value={text}
          onInput={(event) => setText(event.currentTarget.value)}
        />
        <Button type="submit">Go</Button>
        <Button onClick={() => void copyText(path, "the path")}>Copy the path</Button>
        <Button busy={loading} onClick={onReload} title="Refresh">
          Reload
        </Button>
        {isFolder ? <CopyAs what="List the folder" spellings={() => fileSpellings.list(sandboxId, path)} /> : null}
      </form>
    </div>
  );
}
