import { totalmem } from "node:os";
import type { MaxResources } from "../manager/resource-limits.ts";

const UNITS: Readonly<Record<string, number>> = { m: 1024 ** 2, g: 1024 ** 3, t: 1024 ** 4 };

export const MAX_RESOURCES_HINT = "must be like memory=8g,cpus=4,processes=4096,disk=20g; each part is optional";
export const TOTAL_MEMORY_HINT = "must be a size such as 20g, or a share of this machine's memory such as 90%";

/** Undefined if it is not a list of limits. */
export function parseMaxResources(text: string): MaxResources | undefined {
  const maximum: { -readonly [name in keyof MaxResources]: MaxResources[name] } = {};
  for (const entry of text.split(",").filter((part) => part.trim() !== "")) {
    const [name, value = ""] = entry.split("=", 2).map((part) => part.trim());
    const amount = name === "memory" || name === "disk" ? parseSize(value) : parseAmount(value);
    if (amount === undefined) return undefined;
    if (name === "memory") maximum.memoryBytes = amount;
    else if (name === "disk") maximum.diskBytes = amount;
    else if (name === "cpus") maximum.cpus = amount;
    else if (name === "processes") maximum.processes = amount;
    else return undefined;
  }
  return maximum;
}

/** In bytes; a percentage refers to this machine's memory. */
export function parseTotalMemory(text: string): number | undefined {
  const share = /^(\d{1,5})%$/.exec(text.trim())?.[1];
  return share === undefined
    ? parseSize(text.trim())
    : Math.floor((machineMemory() * Number(share)) / 100) || undefined;
}

/** `8g`, `512m`, `1t`. */
function parseSize(text: string): number | undefined {
  const [, digits = "", unit = ""] = /^(\d{1,9})([mgt])(?:i?b)?$/i.exec(text) ?? [];
  return Number(digits) * (UNITS[unit.toLowerCase()] ?? 0) || undefined;
}

function parseAmount(text: string): number | undefined {
  return /^\d{1,9}(\.\d{1,3})?$/.test(text) ? Number(text) || undefined : undefined;
}

/** The memory that this process, or its container, may use. */
export function machineMemory(): number {
  const constrained = process.constrainedMemory();
  return constrained > 0 ? Math.min(totalmem(), constrained) : totalmem();
}
