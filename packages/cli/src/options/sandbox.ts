import { Option, type Command } from "commander";
import type { BodyInputOf, Keep, NetworkPolicy, OnExpiry, Restart, Retention, Routes } from "@sandboxer/protocol";
import type { Run } from "../run.ts";
import { duration, integer, keep, maxLoss, network, pairOption, positiveNumber } from "./parse.ts";

export type CreateBody = BodyInputOf<Routes["createSandbox"]>;
export type RestoreBody = Omit<NonNullable<BodyInputOf<Routes["restoreSnapshot"]>>, "backend" | "image">;

/** Options of a sandbox that starts from a saved state. */
export function addRestoreOptions(command: Command): Command {
  return command
    .option("-n, --name <NAME>", "name")
    .addOption(pairOption("-l, --label <KEY=VALUE>", "label"))
    .addOption(pairOption("-e, --env <KEY=VALUE>", "environment variable"))
    .addOption(pairOption("--input <KEY=VALUE>", "value of a profile parameter"))
    .addOption(ttlOption())
    .addOption(onExpiryOption())
    .addOption(
      new Option("--idle-timeout <DURATION>", "pause or drop it after this long without activity").argParser(duration),
    )
    .addOption(maxLossOption())
    .addOption(new Option("--no-max-loss", "ignore the --max-loss of the profile and the server"))
    .addOption(restartOption())
    .addOption(requireOption())
    .addOption(preferOption())
    .addOption(keepOption("--keep-checkpoints", "checkpoint retention"))
    .addOption(keepOption("--keep-snapshots", "retention of unnamed snapshots"));
}

export function ttlOption(): Option {
  return new Option("--ttl <DURATION>", "lifetime, such as 90s or 4h; see --on-expiry").argParser(duration);
}

export function onExpiryOption(): Option {
  const description = "at the end of its lifetime: pause it, or delete it with its checkpoints (default pause)";
  return new Option("--on-expiry <WHAT>", description).choices(["pause", "delete"]);
}

export function maxLossOption(): Option {
  const description = "checkpoint it while it runs, so that at most this much is lost: 5m, or 10 executions";
  return new Option("--max-loss <LOSS>", description).argParser(maxLoss);
}

function restartOption(): Option {
  const description = "if its server dies: let another server resume it, or wait until you do (default never)";
  return new Option("--restart <WHEN>", description).choices(["never", "always"]);
}

export function requireOption(): Option {
  return pairOption("--require <KEY=VALUE>", "run it only on servers with this label");
}

export function preferOption(): Option {
  return pairOption("--prefer <KEY=VALUE>", "run it on servers with this label, if they have room");
}

/** Undefined: neither was given. */
export function readAffinity(run: Run): CreateBody["affinity"] {
  const affinity = defined({
    require: run.value<Record<string, string>>("require"),
    prefer: run.value<Record<string, string>>("prefer"),
  });
  return Object.keys(affinity).length === 0 ? undefined : affinity;
}

/** Null: no max_loss; undefined: not given. */
export function readMaxLoss(run: Run): string | number | null | undefined {
  const given = run.value<boolean | string | number>("maxLoss");
  return given === false ? null : given === true ? undefined : given;
}

function networkOption(): Option {
  const description = "network policy: none, open, or entries such as pypi.org,*.example.com:443";
  return new Option("--network <POLICY>", description).argParser(network);
}

export function keepOption(flag: string, what: string): Option {
  return new Option(`${flag} <RULE>`, `${what}: 5, or last=3,hourly=24,daily=7`).argParser(keep);
}

/** Undefined: neither was given. A removed or missing part uses the server's default. */
export function readRetention(run: Run, before: Retention | null = null): Retention | null | undefined {
  const checkpoints = run.value<Keep | boolean>("keepCheckpoints");
  const snapshots = run.value<Keep | boolean>("keepSnapshots");
  const said = [checkpoints, snapshots].filter((each) => each !== undefined && each !== true);
  if (said.length === 0) return undefined;
  const part = (given: Keep | boolean | undefined, was: Keep | undefined): Keep | undefined =>
    given === false ? undefined : given === undefined || given === true ? was : given;
  const next = defined({
    checkpoints: part(checkpoints, before?.checkpoints),
    snapshots: part(snapshots, before?.snapshots),
  });
  return Object.keys(next).length === 0 ? null : next;
}

export function readRestoreOptions(run: Run): RestoreBody {
  return defined({
    name: run.text("name"),
    labels: run.value<Record<string, string>>("label"),
    env: run.value<Record<string, string>>("env"),
    inputs: run.value<Record<string, string>>("input"),
    ttl: run.text("ttl"),
    on_expiry: run.value<OnExpiry>("onExpiry"),
    idle_timeout: run.text("idleTimeout"),
    max_loss: readMaxLoss(run),
    restart: run.value<Restart>("restart"),
    affinity: readAffinity(run),
    retention: readRetention(run),
  });
}

/** Options of a new sandbox. Missing ones come from the profile, then from the server. */
export function addCreateOptions(command: Command): Command {
  return addRestoreOptions(command)
    .option("-p, --profile <PROFILE>", "profile to create it from")
    .option("-b, --backend <BACKEND>", "backend")
    .option("--image <IMAGE>", "root filesystem, such as python:3.12-slim")
    .option("-u, --user <USER>", "user of its programs and files, such as root")
    .option("--entrypoint", "start the image's entrypoint and command in the background")
    .option("-k, --key <KEY>", "use the sandbox with this key, or create it")
    .option("--from <NAME>", "start from a named filesystem snapshot")
    .addOption(networkOption())
    .addOption(new Option("--cpus <N>", "CPU limit").argParser(positiveNumber))
    .addOption(new Option("--memory <MB>", "memory limit").argParser(integer(16, 1_048_576)))
    .addOption(new Option("--disk <MB>", "disk limit").argParser(integer(1, 16_777_216)))
    .addOption(new Option("--processes <N>", "process limit").argParser(integer(4, 32_768)))
    .option("--no-checkpoint", "never checkpoint it")
    .option("--no-handoff", "do not hand it off to other servers while it is in use")
    .option("--save-when-idle", "checkpoint it on idle timeout instead of dropping its state")
    .addOption(
      new Option("--on-disconnect <WHAT>", "action when the last client disconnects").choices(["keep", "checkpoint"]),
    );
}

export function readCreateOptions(run: Run): CreateBody {
  const resources = defined({
    cpus: run.number("cpus"),
    memory_mb: run.number("memory"),
    disk_mb: run.number("disk"),
    processes: run.number("processes"),
  });
  return {
    ...readRestoreOptions(run),
    ...defined({
      profile: run.text("profile"),
      backend: run.text("backend"),
      image: run.text("image"),
      entrypoint: run.flag("entrypoint") ? true : undefined,
      user: run.text("user"),
      key: run.text("key"),
      filesystem_snapshot_name: run.text("from"),
      network: run.value<NetworkPolicy>("network"),
      on_disconnect: run.value<"keep" | "checkpoint">("onDisconnect"),
      enable_checkpoint: run.value<boolean>("checkpoint") === false ? false : undefined,
      enable_sandbox_handoff: run.value<boolean>("handoff") === false ? false : undefined,
      enable_idle_timeout_auto_checkpoint: run.flag("saveWhenIdle") ? true : undefined,
      resources: Object.keys(resources).length === 0 ? undefined : resources,
    }),
  };
}

type Defined<T> = { [Key in keyof T]?: Exclude<T[Key], undefined> };

/** Removes undefined fields. */
export function defined<T extends object>(fields: T): Defined<T> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as Defined<T>;
}
