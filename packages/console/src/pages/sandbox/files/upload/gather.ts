/** Something to be put into a folder, by its path from there. */
export interface UploadItem {
  readonly path: string;
  /** Undefined: an empty folder. */
  readonly file: File | undefined;
}

/** What was chosen by a button; files of a folder know their place in it. */
export function itemsOfFiles(files: Iterable<File>): readonly UploadItem[] {
  return [...files].map((file) => ({ path: file.webkitRelativePath || file.name, file }));
}

/** What was dropped, folders with all that is in them. It must be called while the event is handled. */
export async function itemsOfDrop(transfer: DataTransfer): Promise<readonly UploadItem[]> {
  const dropped = [...transfer.items].filter(({ kind }) => kind === "file");
  // The list is emptied as soon as the event is over.
  const sources = dropped.map((item) => item.webkitGetAsEntry() ?? item.getAsFile());
  const items: UploadItem[] = [];
  for (const source of sources) {
    if (source instanceof File) items.push({ path: source.name, file: source });
    else if (source !== null) await walk(source, items);
  }
  return items;
}

async function walk(entry: FileSystemEntry, items: UploadItem[]): Promise<void> {
  const path = entry.fullPath.replace(/^\//, "");
  if (isFile(entry)) {
    items.push({ path, file: await new Promise<File>((resolve, reject) => entry.file(resolve, reject)) });
    return;
  }
  const children = await childrenOf(entry as FileSystemDirectoryEntry);
  if (children.length === 0) items.push({ path, file: undefined });
  for (const child of children) await walk(child, items);
}

/** A reader gives some at a time, and none at the end. */
async function childrenOf(folder: FileSystemDirectoryEntry): Promise<readonly FileSystemEntry[]> {
  const reader = folder.createReader();
  const children: FileSystemEntry[] = [];
  for (;;) {
    const some = await new Promise<FileSystemEntry[]>((resolve, reject) => reader.readEntries(resolve, reject));
    if (some.length === 0) return children;
    children.push(...some);
  }
}

function isFile(entry: FileSystemEntry): entry is FileSystemFileEntry {
  return entry.isFile;
}
