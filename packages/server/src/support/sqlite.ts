type Sqlite = typeof import("node:sqlite");

let loaded: Sqlite | undefined;

/** `node:sqlite`, without the one line that Node 22 and 24 print about it being experimental. Other warnings pass. */
export function loadSqlite(): Sqlite {
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
