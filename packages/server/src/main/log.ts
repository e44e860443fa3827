import { destination, type Logger, pino } from "pino";
import type { ServerConfig } from "./config.ts";

/** JSON lines on stderr. A terminal that was closed takes the log with it, and nothing else. */
export function openLog({ logLevel }: Pick<ServerConfig, "logLevel">): Logger {
  const lines = destination({ dest: 2, sync: false });
  lines.on("error", () => (lines.write = () => true));
  return pino({ level: logLevel, base: null }, lines);
}
