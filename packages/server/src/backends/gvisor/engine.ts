import { execFile } from "node:child_process";
import { promisify } from "node:util";
import type { CallOptions } from "../../support/call-options.ts";
import type { EngineFacts } from "../backend.ts";
import type { Platform } from "./runsc.ts";

/** A runsc that works on this machine, on this platform. Its version binds images to it. */
export interface Engine {
  readonly path: string;
  readonly version: string;
  readonly sha256: string;
  readonly platform: Platform;
  /** Absent: by commands. */
  readonly control?: ControlWay;
}

/** How the server drives sandboxes of an engine; the self-test decides. See `control/engine-control.ts`. */
export type ControlWay = "messages" | "commands";

/** The engines of this machine besides the default one. */
export interface EngineSupply {
  readonly facts: readonly EngineFacts[];
  /** Whether it may fetch or build engines. */
  readonly fetches: boolean;
  /** The engine that wrote an image, fetched if it must be; `image_incompatible` with the next step if there is none. */
  find(wanted: Omit<Engine, "path">, options: CallOptions): Promise<Engine>;
}

/** The differences between versions of runsc. */
export interface EngineTraits {
  /**
   * Whether it can start a restored sandbox while it still loads its memory, so that the first answer does not wait for
   * all of it. It keeps the image's files open until it is done, so they may be removed meanwhile.
   */
  readonly loadsInBackground: boolean;
  /**
   * Whether it limits the size of the writable layer, which `df` shows inside; otherwise the server watches it. runsc
   * 20240729 takes the option for a part of the path.
   */
  readonly limitsDisk: boolean;
  /** Whether it can honour set-user-ID bits, as `sudo` needs. */
  readonly hasSetUserId: boolean;
}

export async function readTraits(enginePath: string): Promise<EngineTraits> {
  const [restore, flags] = await Promise.all([helpOf(enginePath, ["help", "restore"]), helpOf(enginePath, ["flags"])]);
  return {
    loadsInBackground: /^\s*-background\b/m.test(restore),
    limitsDisk: flags.includes("[,size={size}]"),
    hasSetUserId: /^\s*-allow-suid\b/m.test(flags),
  };
}

async function helpOf(enginePath: string, args: readonly string[]): Promise<string> {
  try {
    const { stdout, stderr } = await promisify(execFile)(enginePath, args, { timeout: 10_000 });
    return `${stdout}\n${stderr}`;
  } catch {
    return "";
  }
}
