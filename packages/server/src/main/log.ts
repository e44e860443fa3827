import { destination, type Logger, pino } from "pino";
import type { Metrics } from "../gateway/metrics.ts";
import type { Observer } from "../manager/observing/observer.ts";
import type { ServerConfig } from "./config.ts";

/**
 * JSON lines on stderr. If the terminal was closed, only the log is lost: otherwise unwritten lines would be retried
 * forever at the end of the process.
 */
export function openLog({ logLevel }: Pick<ServerConfig, "logLevel">): Logger {
  const lines = destination({ dest: 2, sync: false });
  const nothing = (): void => {};
  lines.on("error", () => Object.assign(lines, { write: () => true, flushSync: nothing, end: nothing }));
  return pino({ level: logLevel, base: null }, lines);
}

/** Turns the manager's reports into log lines and metrics. */
export function createObserver(log: Logger, metrics: () => Metrics): Observer {
  return {
    operation: (record) => {
      metrics().operation(record);
      const { error, ...facts } = record;
      if (record.outcome === "ok") log.info(facts, record.operation);
      else log.warn({ ...facts, error: describe(error) }, `${record.operation} failed`);
    },
    state: (sandboxId, from, to) => log.debug({ sandboxId, from, to }, "state"),
    output: (bytes) => metrics().output(bytes),
    problem: (message, { error, ...context }) => log.warn({ ...context, error: describe(error) }, message),
  };
}

function describe(error: unknown): string | undefined {
  return error === undefined ? undefined : error instanceof Error ? error.message : String(error);
}
