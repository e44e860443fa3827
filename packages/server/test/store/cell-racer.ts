/**
 * One process of directory-races.test.ts and bucket-races.test.ts. Appends its own entries to a list in a cell, and tells each one on stdout only
 * after the store has acknowledged it. argv: store, key, name, how many (0: until killed).
 */
import { writeSync } from "node:fs";
import { SandboxerError } from "@sandboxer/protocol/errors";
import { openDriver } from "../../src/store/open-driver.ts";
import { AmbiguousWriteError, type Cell } from "../../src/store/store.ts";

const [address = "", key = "", name = "", wanted = "0"] = process.argv.slice(2);
const store = await openDriver(address);

/** A store that fails for a while is asked again. */
async function readPatiently(): Promise<Cell | undefined> {
  for (;;) {
    try {
      return await store.readCell(key);
    } catch (error) {
      if (!(error instanceof SandboxerError) || error.code !== "store_unavailable") throw error;
    }
  }
}

for (let done = 0; Number(wanted) === 0 || done < Number(wanted);) {
  const cell = await readPatiently();
  const { chain = [] } = JSON.parse(cell === undefined ? "{}" : Buffer.from(cell.body).toString()) as {
    chain?: string[];
  };
  const entry = `${name}-${done}`;
  if (chain.includes(entry)) {
    writeSync(1, `${entry}\n`);
    done++;
    continue;
  }
  try {
    const body = Buffer.from(JSON.stringify({ chain: [...chain, entry] }));
    const result = await store.swapCell(key, cell?.version, body);
    if (result.outcome === "conflict") continue;
    writeSync(1, `${entry}\n`);
    done++;
  } catch (error) {
    // The next read of the chain shows it.
    if (!(error instanceof AmbiguousWriteError)) throw error;
  }
}
