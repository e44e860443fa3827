import type { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { extract, type Header } from "tar-stream";
import { tarEnd, tarHeader, tarPadding, type TarEntry } from "../../support/tar-header.ts";
import { LayerPaths } from "./layer-paths.ts";
import { LayerRefused } from "./layer-refused.ts";

/** Facts about a layer besides its files. Paths are relative; each character is one byte (latin1). */
export interface LayerNotes {
  /** Names of lower layers that this one removes. */
  readonly whiteouts: string[];
  /** Folders of which nothing from lower layers is visible. */
  readonly opaque: string[];
  /** Folders that the layer needs but does not describe: theirs are the attributes of the lower layer. */
  readonly implicit: string[];
}

/** Options of tar-stream that its types do not know. */
const READING = { filenameEncoding: "latin1", allowUnknownFormat: true } as object;

const WHITEOUT = ".wh.";
const OPAQUE = ".wh..wh..opq";
/** Other names with this start are leftovers of aufs. */
const AUFS = ".wh..wh.";
const KINDS: Readonly<Partial<Record<string, TarEntry["kind"]>>> = {
  file: "file",
  "contiguous-file": "file",
  link: "hardlink",
  symlink: "symlink",
  directory: "folder",
};
/** Devices would give access to the host's; nothing in an image needs a named pipe. */
const DROPPED = new Set<string>(["character-device", "block-device", "fifo"]);
const ATTRIBUTE = "SCHILY.xattr.";
const KEPT_ATTRIBUTES = /^(?:user\..+|security\.capability)$/s;
const SETTABLE_MODE = 0o7777;
const MAX_ID = 0xff_ff_ff_fe;

/**
 * A layer's tar, rewritten so that unpacking it into an empty folder cannot touch anything outside: names are plain and
 * relative, links of the layer are followed here and never by the file system, devices are dropped. Whiteouts become
 * {@link LayerNotes}.
 */
export async function* cleanTar(source: Readable, notes: LayerNotes, onEntry: () => void): AsyncGenerator<Buffer> {
  const entries = extract(READING);
  const reading = pipeline(source, entries);
  // Reported below, when the entries end.
  reading.catch(() => {});
  const paths = new LayerPaths();
  try {
    for await (const entry of entries) {
      onEntry();
      const placed = place(entry.header, paths, notes);
      if (placed === undefined) {
        entry.resume();
        continue;
      }
      yield tarHeader(placed);
      if (placed.kind !== "file") {
        entry.resume();
        continue;
      }
      yield* entry as AsyncIterable<Buffer>;
      if (placed.sizeBytes % 512 !== 0) yield tarPadding(placed.sizeBytes);
    }
    await reading;
  } finally {
    entries.destroy();
  }
  notes.implicit.push(...paths.implicitFolders());
  yield tarEnd();
}

/** The entry to unpack; undefined: none. */
function place(header: Header, paths: LayerPaths, notes: LayerNotes): TarEntry | undefined {
  // A field of an archive may be missing, whatever the types say.
  const type: string | null = header.type ?? null;
  const pax = (header.pax ?? undefined) as Readonly<Record<string, string>> | undefined;
  if (pax !== undefined && Object.keys(pax).some((key) => key.startsWith("GNU.sparse."))) {
    throw new LayerRefused("it has sparse files, which are not supported");
  }
  if (type !== null && DROPPED.has(type)) return undefined;
  const given = bytesOf(header.name, pax?.["path"]);
  const isFolder = type === "directory" || (type === "file" && given.endsWith("/"));
  const kind = isFolder ? "folder" : type === null ? undefined : KINDS[type];
  if (kind === undefined) throw new LayerRefused(`the entry ${shown(given)} is of an unknown kind`);
  const path = paths.place(given);
  // The folder itself keeps its attributes.
  if (path === "") return undefined;
  const slash = path.lastIndexOf("/");
  const [folder, name] = [path.slice(0, Math.max(0, slash)), path.slice(slash + 1)];
  if (name.startsWith(WHITEOUT)) {
    if (name === OPAQUE) notes.opaque.push(folder);
    else if (!name.startsWith(AUFS) && isName(name.slice(WHITEOUT.length))) {
      notes.whiteouts.push(`${folder === "" ? "" : `${folder}/`}${name.slice(WHITEOUT.length)}`);
    }
    return undefined;
  }
  const target = bytesOf(header.linkname ?? "", pax?.["linkpath"]);
  if (kind === "symlink" && (target === "" || target.includes("\0"))) {
    throw new LayerRefused(`the link ${shown(path)} has no valid target`);
  }
  const linkTarget = kind === "hardlink" ? paths.existing(target) : kind === "symlink" ? target : undefined;
  if (kind === "hardlink" && (linkTarget === "" || linkTarget === path)) {
    throw new LayerRefused(`the hard link ${shown(path)} has no valid target`);
  }
  paths.put(path, kind, target);
  return {
    kind,
    name: Buffer.from(kind === "folder" ? `./${path}/` : `./${path}`, "latin1"),
    // A hard link's target is a name in the archive.
    ...(linkTarget === undefined
      ? {}
      : { linkTarget: Buffer.from(kind === "hardlink" ? `./${linkTarget}` : linkTarget, "latin1") }),
    pax: attributesIn(pax),
    mode: header.mode & SETTABLE_MODE,
    uid: idOf(header.uid, pax?.["uid"]),
    gid: idOf(header.gid, pax?.["gid"]),
    sizeBytes: kind === "file" ? header.size : 0,
    modifiedMs: Number.isNaN(header.mtime.getTime()) ? 0 : header.mtime.getTime(),
  };
}

/** Names in extended headers are UTF-8; others are bytes, which the parser returns as latin1. */
function bytesOf(name: string, fromPax: string | undefined): string {
  return fromPax === undefined ? name : Buffer.from(fromPax, "utf8").toString("latin1");
}

function isName(name: string): boolean {
  return name !== "" && name !== "." && name !== "..";
}

function idOf(plain: number, extended: string | undefined): number {
  const id = extended !== undefined && /^\d{1,10}$/.test(extended) ? Number(extended) : plain;
  return Number.isSafeInteger(id) && id >= 0 && id <= MAX_ID ? id : 0;
}

/** User attributes and capabilities. The parser reads values as UTF-8, so those that are not are lost. */
function attributesIn(pax: Readonly<Record<string, string>> = {}): Buffer | undefined {
  const records = Object.entries(pax)
    .filter(([key]) => key.startsWith(ATTRIBUTE) && KEPT_ATTRIBUTES.test(key.slice(ATTRIBUTE.length)))
    .filter(([, value]) => !value.includes("\uFFFD"))
    .map(([key, value]) => paxRecord(Buffer.from(` ${key}=${value}\n`)));
  return records.length === 0 ? undefined : Buffer.concat(records);
}

/** Its length counts its own digits. */
function paxRecord(text: Buffer): Buffer {
  let digits = String(text.length).length;
  if (String(text.length + digits).length > digits) digits += 1;
  return Buffer.concat([Buffer.from(String(text.length + digits)), text]);
}

function shown(path: string): string {
  return JSON.stringify(Buffer.from(path, "latin1").toString("utf8").slice(0, 200));
}
