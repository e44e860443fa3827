import { Command, Option } from "commander";
import { parseDurationMs, SandboxerError, type Scope, secretNameSchema } from "@sandboxer/protocol";
import { parseConfig } from "@sandboxer/server/config";
import type { KeyFile, KeyRecord } from "@sandboxer/server/keys";
import { withExamples, type Examples } from "../define-command.ts";
import type { Io } from "../io.ts";
import { formatKeys, type ShownKey } from "../output/keys.ts";
import { rotateEncryptionCommand } from "./rotate-encryption.ts";
import { addSettingFlags, readSettingFlags } from "../setting-flags.ts";

const SCOPES = ["read", "use", "admin"] as const satisfies readonly Scope[];

const EXAMPLES = {
  create: [
    "sandboxer keys create --name ci --scope use --expires 30d",
    "sandboxer keys create --name tenant-a --scope use --encryption-key tenant-a",
    "sandboxer keys create --name ci --scope read --json | jq -r .key",
  ],
  list: [
    "sandboxer keys list",
    "sandboxer keys list --data-directory /srv/sandboxer",
    "sandboxer keys list --json | jq -r '.keys[] | select(.status == \"active\") | .name'",
  ],
  revoke: [
    "sandboxer keys revoke 3f2a",
    "sandboxer keys revoke 3f2a --data-directory /srv/sandboxer",
    "sandboxer keys revoke 3f2a --json | jq -r .revoked_at",
  ],
  rotate: [
    "sandboxer keys rotate-encryption --store /srv/store --dry-run",
    "sandboxer keys rotate-encryption --store /srv/store --encryption-key new --encryption-old-keys old",
    "sandboxer keys rotate-encryption --default-store --json",
  ],
} as const satisfies Readonly<Record<string, Examples>>;

/** Works on the file in the data directory; servers that use it notice within a second. */
export function keysCommand(io: Io, setExitCode: (code: number) => void): Command {
  const { create, list, revoke, rotate } = EXAMPLES;
  const keys = withExamples(new Command(), [create[0], list[0], revoke[0], rotate[0]]);
  const onFile: readonly [Command, Examples][] = [
    [createCommand(io), create],
    [listCommand(io), list],
    [revokeCommand(io), revoke],
  ];
  for (const [command, examples] of onFile) {
    withExamples(command.option("--json", "print JSON"), examples);
    keys.addCommand(addSettingFlags(command, ["dataDirectory"]));
  }
  return keys.addCommand(withExamples(rotateEncryptionCommand(io, setExitCode).option("--json", "print JSON"), rotate));
}

interface CreateOptions {
  readonly name: string;
  readonly scope: Scope;
  readonly expires?: string;
  readonly encryptionKey?: string;
  readonly json?: true;
}

function createCommand(io: Io): Command {
  return new Command("create")
    .description("Create a key and print it. It cannot be shown again.")
    .requiredOption("--name <NAME>", "purpose of the key; shown in lists and in the audit log")
    .addOption(
      new Option("--scope <SCOPE>", "read: view only; use: work with sandboxes; admin: everything")
        .choices(SCOPES)
        .makeOptionMandatory(),
    )
    .option("--expires <DURATION>", "lifetime of the key, such as 12h or 30d (default: unlimited)")
    .option(
      "--encryption-key <NAME>",
      "server secret that encrypts the data of sandboxes created with this key (default: the server's own)",
    )
    .action(async (options: CreateOptions) => {
      const { name, scope, expires, encryptionKey, json } = options;
      const expiresInMs = expires === undefined ? undefined : parseDurationMs(expires);
      const file = await openKeyFile(io, options);
      const { text, record } = await file.create({
        name,
        scope,
        expiresInMs,
        encryptionKey: checkedName(encryptionKey),
      });
      if (json === true) io.stdout(`${JSON.stringify({ key: text, ...(await shown(record)) })}\n`);
      else {
        io.stdout(`${text}\n`);
        const end = record.expires_at === null ? "does not expire" : `expires at ${record.expires_at}`;
        io.stderr(`Key ${record.id} (${name}) has the scope ${scope} and ${end}.\n`);
        io.stderr("Save the key now: the server stores only its hash. Send it as `Authorization: Bearer KEY`.\n");
      }
    });
}

function listCommand(io: Io): Command {
  return new Command("list")
    .alias("ls")
    .description("List all keys, including revoked and expired ones. The keys themselves are not stored.")
    .action(async (options: { json?: true }) => {
      const file = await openKeyFile(io, options);
      const keys = await Promise.all(file.list().map(shown));
      io.stdout(options.json === true ? `${JSON.stringify({ keys })}\n` : formatKeys(keys));
    });
}

function revokeCommand(io: Io): Command {
  return new Command("revoke")
    .description("Revoke a key. Running servers refuse it at once. This cannot be undone.")
    .argument("<id>", "id of the key, or a prefix of it")
    .action(async (id: string, options: { json?: true }) => {
      const file = await openKeyFile(io, options);
      const record = await file.revoke(id);
      if (options.json === true) io.stdout(`${JSON.stringify(await shown(record))}\n`);
      else {
        io.stdout(`${record.id}\n`);
        io.stderr(`Key ${record.id} (${record.name}) is revoked.\n`);
      }
    });
}

function checkedName(name: string | undefined): string | undefined {
  if (name === undefined || secretNameSchema.safeParse(name).success) return name;
  throw new SandboxerError("bad_request", `"${name}" is not a valid secret name.`, {
    hint: "Use a name from `secrets` in the server's config file; `sandboxer config` lists them.",
  });
}

async function openKeyFile(io: Io, options: object): Promise<KeyFile> {
  const flags = readSettingFlags({ ...options });
  const { dataDirectory } = parseConfig({ flags, env: io.env, homeDirectory: io.homeDirectory, serving: false });
  const { KeyFile: File } = await import("@sandboxer/server/keys");
  return new File(dataDirectory);
}

async function shown(record: KeyRecord): Promise<ShownKey> {
  const { keyStatus } = await import("@sandboxer/server/keys");
  const { id, name, scope, created_at, expires_at, revoked_at, encryption_key = null } = record;
  const times = { created_at, expires_at, revoked_at };
  return { id, name, scope, status: keyStatus(record, Date.now()), ...times, encryption_key };
}
