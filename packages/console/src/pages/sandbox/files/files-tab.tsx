import type { JSX } from "preact";
import { useEffect } from "preact/hooks";
import { useLoaded } from "../../../live/use-loaded.ts";
import { Link, query } from "../../../router.tsx";
import { Button } from "../../../ui/button.tsx";
import { ErrorBox } from "../../../ui/error-box.tsx";
import type { SandboxTabProperties } from "../tabs.tsx";
import { filesAddress } from "./addresses.ts";
import { changes, find, list } from "./file-calls.ts";
import { FileView } from "./file-view.tsx";
import { FolderView } from "./folder-view.tsx";
import { PathBar } from "./path-bar.tsx";
import { HOME, normalizePath, parentOf } from "./paths.ts";
import { UploadList } from "./upload/upload-list.tsx";
import { isBroken } from "./visible-name.ts";
import "./files.css";

/** The files of a sandbox. The URL has the selected folder or file. */
export function FilesTab({ record }: SandboxTabProperties): JSX.Element {
  const { id } = record;
  const path = normalizePath(query.value.get("path") ?? HOME);
  const look = useLoaded(
    async (signal) => {
      const found = await find(id, path, signal);
      const entries = found.entry.kind === "folder" ? await list(id, found.path, signal) : undefined;
      return { of: path, found, entries };
    },
    [id, path, changes.value],
  );
  useEffect(() => scrollTo(0, 0), [path]);
  const error = look.loading ? undefined : look.error;
  // The current content stays visible while it is refreshed, but not for another path.
  const value = look.value?.of === path ? look.value : undefined;
  return (
    <div class="files">
      <h2 class="visually-hidden">Files</h2>
      <PathBar
        key={path}
        sandboxId={id}
        path={path}
        isFolder={value?.entries !== undefined}
        loading={look.loading}
        onReload={look.reload}
      />
      <UploadList sandboxId={id} />
      {error === undefined ? null : (
        <ErrorBox error={error}>
          {isBroken(path) && error.code === "file_not_found" ? (
            <p>
              A name in this path contains bytes that are not UTF-8, so it cannot be opened. Rename it in its folder
              first.
            </p>
          ) : null}
          <p class="row">
            <Button onClick={look.reload}>Refresh</Button>
            {path === "/" ? null : <Link to={filesAddress(id, parentOf(path))}>Parent folder</Link>}
            <Link to={filesAddress(id, "/")}>Root folder</Link>
          </p>
        </ErrorBox>
      )}
      {value === undefined && error === undefined ? <p class="page-note">Loading …</p> : null}
      {value === undefined ? null : value.entries === undefined ? (
        <FileView key={path} sandboxId={id} path={path} found={value.found} />
      ) : (
        <FolderView key={path} sandboxId={id} path={path} realPath={value.found.path} entries={value.entries} />
      )}
    </div>
  );
}
