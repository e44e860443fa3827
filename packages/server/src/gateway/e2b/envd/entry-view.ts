import type { DescribedFile } from "../../../manager/files/described-file.ts";

/** The prefix of extended attributes that are metadata of files for E2B's clients. */
export const METADATA_PREFIX = "e2b.";

const TYPES = { file: "FILE_TYPE_FILE", folder: "FILE_TYPE_DIRECTORY", symlink: "FILE_TYPE_SYMLINK" } as const;

/** A file as E2B's clients read it. */
export interface EntryView {
  readonly name: string;
  readonly type: string;
  readonly path: string;
  /** Text, as proto3 has it for 64 bits. */
  readonly size: string;
  readonly mode: number;
  readonly permissions: string;
  readonly owner: string;
  readonly group: string;
  readonly modifiedTime: string;
  readonly symlinkTarget?: string;
  /** `type` is that of the target. */
  readonly isSymlink?: true;
  readonly metadata?: Readonly<Record<string, string>>;
}

export function entryView(file: DescribedFile): EntryView {
  const { name, path, kind, mode, sizeBytes, modifiedMs, owner, group, leadsTo } = file;
  const metadata = metadataOf(file);
  return {
    name,
    type: kind === "other" ? "FILE_TYPE_UNSPECIFIED" : TYPES[kind],
    path,
    // Their clients expect that a folder is not empty.
    size: String(kind === "folder" ? Math.max(sizeBytes, 1) : sizeBytes),
    mode: mode & 0o777,
    permissions: leadsTo === undefined ? permissionText(kind, mode) : "Lrwxrwxrwx",
    owner,
    group,
    modifiedTime: timeOf(modifiedMs),
    ...(leadsTo === undefined ? {} : { symlinkTarget: leadsTo, isSymlink: true }),
    ...(metadata === undefined ? {} : { metadata }),
  };
}

/** Undefined: it has none. */
export function metadataOf({ attributes }: Pick<DescribedFile, "attributes">): Record<string, string> | undefined {
  const pairs = [...attributes].flatMap(([name, value]) =>
    name.startsWith(METADATA_PREFIX) ? [[name.slice(METADATA_PREFIX.length), value] as const] : [],
  );
  return pairs.length === 0 ? undefined : Object.fromEntries(pairs);
}

/** As Go writes it: `-rw-r--r--`, `drwxr-xr-x`, `dtrwxrwxrwx`, `Lrwxrwxrwx`. */
export function permissionText(kind: DescribedFile["kind"], mode: number): string {
  const letters = [mode >> 6, mode >> 3, mode].map(
    (bits) => `${bits & 4 ? "r" : "-"}${bits & 2 ? "w" : "-"}${bits & 1 ? "x" : "-"}`,
  );
  const special = `${mode & 0o4000 ? "u" : ""}${mode & 0o2000 ? "g" : ""}${mode & 0o1000 ? "t" : ""}`;
  const first = { file: "", folder: "d", symlink: "L", other: "?" }[kind] + special;
  return (first === "" ? "-" : first) + letters.join("");
}

/** A time inside the sandbox may be any number. */
function timeOf(ms: number): string {
  return new Date(ms >= 0 && ms <= 253_402_300_799_999 ? ms : 0).toISOString();
}
