import type { FileEntry } from "@sandboxer/client";
import type { JSX } from "preact";
import { fileSpellings } from "../../../actions/file-actions.ts";
import { navigate } from "../../../router.tsx";
import { may } from "../../../session.ts";
import { SpellingList } from "../../../ui/copy-as.tsx";
import { copyText } from "../../../ui/copy-text.ts";
import { Dialog } from "../../../ui/dialog.tsx";
import { Menu, type MenuItem } from "../../../ui/menu.tsx";
import { downloadAddress, filesAddress } from "./addresses.ts";
import { joinPath } from "./paths.ts";
import { RemoveEntryDialog } from "./remove-entry-dialog.tsx";
import { RenameEntryDialog } from "./rename-entry-dialog.tsx";
import { plainName } from "./visible-name.ts";

export interface EntryRequest {
  readonly what: "rename" | "remove" | "copy as";
  readonly entry: FileEntry;
}

interface EntryMenuProperties {
  readonly sandboxId: string;
  readonly folder: string;
  readonly entry: FileEntry;
  readonly onRequest: (request: EntryRequest) => void;
}

/** Actions on one entry of a folder. */
export function EntryMenu({ sandboxId, folder, entry, onRequest }: EntryMenuProperties): JSX.Element {
  const path = joinPath(folder, entry.name);
  const items = (): readonly MenuItem[] => [
    { text: "Open", choose: () => navigate(filesAddress(sandboxId, path)) },
    // The target of a link is known when it is opened.
    ...(entry.kind === "other" || entry.kind === "symlink"
      ? []
      : [
          {
            text: entry.kind === "folder" ? "Download as tar" : "Download",
            choose: () => download(sandboxId, path, entry),
          },
        ]),
    { text: "Copy the path", choose: () => void copyText(path, "the path") },
    { text: "Copy as CLI, SDK or curl", choose: () => onRequest({ what: "copy as", entry }) },
    ...(may("use")
      ? [
          { text: "Rename or move …", choose: () => onRequest({ what: "rename", entry }) },
          { text: "Delete …", danger: true, choose: () => onRequest({ what: "remove", entry }) },
        ]
      : []),
  ];
  return (
    <Menu label={`Actions for ${plainName(entry.name)}`} items={items}>
      ⋯
    </Menu>
  );
}

/** Like a link with `download`: the browser streams it to the disk. */
function download(sandboxId: string, path: string, { kind }: FileEntry): void {
  const link = document.createElement("a");
  link.href = downloadAddress(sandboxId, path, kind === "folder" ? "folder" : "file");
  link.download = "";
  link.click();
}

interface EntryDialogProperties {
  readonly sandboxId: string;
  readonly folder: string;
  readonly request: EntryRequest;
  readonly onClose: () => void;
}

export function EntryDialog({ sandboxId, folder, request, onClose }: EntryDialogProperties): JSX.Element {
  const { what, entry } = request;
  const path = joinPath(folder, entry.name);
  const common = { sandboxId, folder, entry, onClose };
  switch (what) {
    case "rename":
      return <RenameEntryDialog {...common} onRenamed={() => {}} />;
    case "remove":
      return <RemoveEntryDialog {...common} onRemoved={() => {}} />;
    case "copy as":
      return (
        <Dialog title={`Download ${plainName(entry.name)}`} onClose={onClose} wide>
          <SpellingList
            spellings={
              entry.kind === "folder" ? fileSpellings.download(sandboxId, path) : fileSpellings.read(sandboxId, path)
            }
          />
        </Dialog>
      );
  }
}
