/** An item to upload, by its path relative to the target folder. */
export interface UploadItem {
  readonly path: string;
  /** Undefined: an empty folder. */
  readonly file: File | undefined;
}

/** Items chosen with a button; files of a folder know their relative path. */
export function itemsOfFiles(files: Iterable<File>): readonly UploadItem[] {
  return [...files].map((file) => ({ path: file.webkitRelativePath || file.name, file }));
}

/** Dropped items, folders with their contents. Call it while the event is handled. */
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

/** A reader returns some at a time, and none at the end. */
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
