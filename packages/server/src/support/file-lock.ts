import { openSync, closeSync, mkdirSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { isErrno } from "@sandboxer/protocol";
import { systemClock } from "./clock.ts";

/**
 * A lock that dies with its process, also on kill -9: SQLite's exclusive lock on a file is a POSIX lock, and the kernel
 * drops those when the process ends. The file stays behind, empty; its presence says nothing.
 *
 * The lock file must not be opened by other means in the holding process: closing any descriptor of a file drops the
 * process's POSIX locks on it.
 */
export interface FileLock {
  readonly path: string;
  /** Idempotent. */
  release(): Promise<void>;
}

export interface FileLockOptions {
  /** How long to wait for the current holder. Default 0: answer at once. */
  readonly waitMs?: number;
  readonly signal?: AbortSignal;
  /** Called once, when there is a holder to wait for. */
  readonly onWait?: () => void;
}

/** Garbage collection closes an unreferenced database, and its lock would go with it. */
const heldDatabases = new Set<object>();

const RETRY_MS = 50;
/** {@link isFileLockFree} takes the lock for a moment, which must not count as a holder. */
const ATTEMPTS_AT_LEAST = 3;

/** Undefined if another process, or another caller in this one, holds the lock until the time limit. */
export async function acquireFileLock(path: string, options: FileLockOptions = {}): Promise<FileLock | undefined> {
  const { waitMs = 0, signal, onWait } = options;
  const deadlineMs = systemClock.monotonicMs() + waitMs;
  mkdirSync(dirname(path), { recursive: true });
  for (let attempt = 1; ; attempt++) {
    signal?.throwIfAborted();
    const lock = tryLock(path);
    if (lock !== undefined) return lock;
    if (attempt >= ATTEMPTS_AT_LEAST && systemClock.monotonicMs() >= deadlineMs) return undefined;
    if (attempt === ATTEMPTS_AT_LEAST) onWait?.();
    await systemClock.sleep(attempt < ATTEMPTS_AT_LEAST ? 5 : RETRY_MS, signal);
  }
}

/** Whether nobody holds the lock now. A missing file is free; nothing is created. */
export async function isFileLockFree(path: string): Promise<boolean> {
  if (inodeOf(path) === undefined) return true;
  const lock = tryLock(path);
  await lock?.release();
  return lock !== undefined;
}

function tryLock(path: string): FileLock | undefined {
  createIfAbsent(path);
  const inode = inodeOf(path);
  const { DatabaseSync } = loadSqlite();
  const database = new DatabaseSync(path, { timeout: 0 });
  try {
    database.exec("BEGIN EXCLUSIVE");
  } catch (thrown) {
    database.close();
    if (isBusy(thrown)) return undefined;
    throw thrown;
  }
  // If the file was removed in between, other processes do not see this lock.
  if (inode === undefined || inodeOf(path) !== inode) {
    database.close();
    return undefined;
  }
  heldDatabases.add(database);
  return {
    path,
    async release() {
      if (heldDatabases.delete(database)) database.close();
    },
  };
}

/** `wx` never opens an existing file, so that closing it here cannot drop a lock that this process holds. */
function createIfAbsent(path: string): void {
  try {
    closeSync(openSync(path, "wx", 0o600));
  } catch (thrown) {
    if (!isErrno(thrown) || thrown.code !== "EEXIST") throw thrown;
  }
}

function inodeOf(path: string): bigint | undefined {
  return statSync(path, { bigint: true, throwIfNoEntry: false })?.ino;
}

function isBusy(thrown: unknown): boolean {
  const SQLITE_BUSY = 5;
  const SQLITE_LOCKED = 6;
  const code = (thrown as { errcode?: number }).errcode;
  return code === SQLITE_BUSY || code === SQLITE_LOCKED;
}

type Sqlite = typeof import("node:sqlite");

let loaded: Sqlite | undefined;

/** `node:sqlite`, without the one line that Node 22 and 24 print about it being experimental. Other warnings pass. */
function loadSqlite(): Sqlite {
  if (loaded !== undefined) return loaded;
  // oxlint-disable-next-line typescript/unbound-method -- it is called with its process, and put back as it was
  const { emitWarning } = process;
  process.emitWarning = (warning: string | Error, ...rest: unknown[]) => {
    if (rest[0] === "ExperimentalWarning" && String(warning).includes("SQLite")) return;
    Reflect.apply(emitWarning, process, [warning, ...rest]);
  };
  try {
    loaded = process.getBuiltinModule("node:sqlite");
    return loaded;
  } finally {
    process.emitWarning = emitWarning;
  }
}
