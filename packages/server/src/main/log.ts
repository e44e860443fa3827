import { destination, type Logger, pino } from "pino";
import type { ServerConfig } from "./config.ts";

/**
 * JSON lines on stderr. A terminal that was closed takes the log with it, and nothing else: what is still to be written
 * would be tried again for ever at the end of the process.
 */
export function openLog({ logLevel }: Pick<ServerConfig, "logLevel">): Logger {
  const lines = destination({ dest: 2, sync: false });
  const nothing = (): void => {};
  lines.on("error", () => Object.assign(lines, { write: () => true, flushSync: nothing, end: nothing }));
  return pino({ level: logLevel, base: null }, lines);
}
