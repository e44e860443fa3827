import { InvalidArgumentError, Option } from "commander";
import { DURATION_HINT, tryParseDurationMs } from "@sandboxer/protocol/duration";
import { KEEP_HINT, type KeepCounts, parseKeep } from "@sandboxer/protocol/keep-text";
import { type NetworkPolicy, parseNetworkText } from "@sandboxer/protocol/network-text";

/** Parsers of option values. An invalid value is a usage error that names the option. */

export function duration(text: string): string {
  if (tryParseDurationMs(text) === undefined) throw new InvalidArgumentError(DURATION_HINT);
  return text;
}

export function durationMs(text: string): number {
  const parsed = tryParseDurationMs(text);
  if (parsed === undefined) throw new InvalidArgumentError(DURATION_HINT);
  return parsed;
}

/** `5m`, or a number of executions. */
export function maxLoss(text: string): string | number {
  if (tryParseDurationMs(text) !== undefined) return text;
  const turns = /^[0-9]{1,7}$/.test(text) ? Number(text) : 0;
  if (turns >= 1 && turns <= 1_000_000) return turns;
  throw new InvalidArgumentError(`Write a number of executions from 1 to 1000000, or a duration. ${DURATION_HINT}`);
}

/** `3`, or `last=3,hourly=24,daily=7`. */
export function keep(text: string): KeepCounts {
  const rule = parseKeep(text);
  if (rule === undefined) throw new InvalidArgumentError(KEEP_HINT);
  return rule;
}

/** `none`, `open`, or entries with commas between them. */
export function network(text: string): NetworkPolicy {
  const policy = parseNetworkText(text);
  if (policy !== undefined) return policy;
  throw new InvalidArgumentError(
    "Write none, open, or domains, addresses and CIDRs with commas between them, such as pypi.org,*.example.com:443; ! denies one.",
  );
}

export function integer(least: number, most: number): (text: string) => number {
  return (text) => {
    const value = /^-?\d{1,15}$/.test(text) ? Number(text) : Number.NaN;
    if (value >= least && value <= most) return value;
    throw new InvalidArgumentError(`It must be an integer from ${least} to ${most}.`);
  };
}

export function positiveNumber(text: string): number {
  const value = /^\d*\.?\d+$/.test(text) ? Number(text) : Number.NaN;
  if (value > 0) return value;
  throw new InvalidArgumentError("It must be a number above 0.");
}

/** As {@link positiveNumber}, or 0: no limit. */
export function rate(text: string): number {
  return /^0+$/.test(text) ? 0 : positiveNumber(text);
}

/** `KEY=VALUE`, repeatable. */
export function pair(text: string, before: Readonly<Record<string, string>> = {}): Record<string, string> {
  const at = text.indexOf("=");
  if (at < 1) throw new InvalidArgumentError("Write it as KEY=VALUE.");
  return { ...before, [text.slice(0, at)]: text.slice(at + 1) };
}

export function several(text: string, before: readonly string[] = []): string[] {
  return [...before, text];
}

export function pairOption(flags: string, description: string): Option {
  return new Option(flags, `${description} (repeatable)`).argParser(pair);
}
