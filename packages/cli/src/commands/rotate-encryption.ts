import { Command } from "commander";
import { SandboxerError } from "@sandboxer/protocol";
import { parseConfig } from "@sandboxer/server/config";
import type { RotatedStore } from "@sandboxer/server/keys";
import type { Io } from "../io.ts";
import { addSettingFlags, readSettingFlags } from "../setting-flags.ts";
import { exitOnSignal } from "../stop-signals.ts";

const SOME_FAILED = 10;

/** `keys rotate-encryption`: works on the store itself, with the secrets of this machine's config file. */
export function rotateEncryptionCommand(io: Io, setExitCode: (code: number) => void): Command {
  const command = new Command("rotate-encryption")
    .description("Re-encrypt the data keys of a store with the current encryption key, and seal its records.")
    .option("--dry-run", "show what would be done; change nothing")
    .option("--default-store", "use the store that `npm start` uses");
  addSettingFlags(command, ["store", "encryptionKey", "encryptionOldKeys", "requireSealed"]);
  return command.action(async (options: Record<string, unknown>) => {
    const flags = readSettingFlags(options);
    const config = parseConfig({ flags, env: io.env, homeDirectory: io.homeDirectory, serving: false });
    if (config.store === undefined) {
      throw new SandboxerError("bad_request", "No store was given.", {
        hint: "Give one with --store, or use --default-store for the store of `npm start`.",
      });
    }
    const apply = options["dryRun"] !== true;
    const { rotateEncryption } = await import("@sandboxer/server/keys");
    const stopInterrupting = exitOnSignal(io);
    const warn = (message: string): void => io.stderr(`${message}\n`);
    const rotation = await rotateEncryption({ ...config, store: config.store }, { apply, warn });
    stopInterrupting();
    io.stdout(
      options["json"] === true ? `${JSON.stringify({ applied: apply, ...rotation })}\n` : told(rotation, apply),
    );
    const failures = rotation.failed.length + (rotation.records?.failed.length ?? 0);
    if (failures > 0) setExitCode(SOME_FAILED);
  });
}

function told({ rewrapped, current, client_held, failed, records }: RotatedStore, applied: boolean): string {
  const lines = [
    `${rewrapped} data keys ${applied ? "are now" : "would be"} encrypted with the current key.`,
    `${current} already were.`,
    ...(client_held === 0 ? [] : [`${client_held} are encrypted with client keys and stay unchanged.`]),
    ...failed.map(({ data_key, message }) => `${data_key}: ${message}`),
    ...(failed.length === 0 ? [] : [`${failed.length} could not be decrypted. Keep the old keys until they can be.`]),
    ...(records === null ? [] : [`${records.sealed} records ${applied ? "are now" : "would be"} sealed with it.`]),
    ...(records?.failed ?? []).map(({ message }) => message),
    ...(applied ? [] : ["Nothing was changed. Run the command again without --dry-run."]),
  ];
  return `${lines.join("\n")}\n`;
}
