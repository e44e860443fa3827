import { quoteForShell } from "../../support/shell-quote.ts";
import type { ComposeProject } from "./handle.ts";

/**
 * The scripts that run on the host, in a POSIX shell. Each is guarded (`guard.ts`), except for those that read their
 * input and so end with it. Everything that changes a sandbox holds its lock, so that leftovers of a lost connection
 * have ended before anything is removed.
 */
const COMMON = `set -u
export LC_ALL=C
umask 077
[ -z "$docker_host" ] || export DOCKER_HOST="$docker_host"
die() { printf 'sandboxer:%s:%s\\n' "$1" "$2" >&2; exit 80; }
last() { printf '%s' "$1" | tail -n 1; }
lock() {
  exec 9>> "$lock_file" || die no_base "$lock_file"
  flock -w 90 9 || die busy ''
}
compose() {
  set -- -p "$project" -f "$dir/$compose_file" --project-directory "$dir" "$@"
  if [ "$compose_kind" = plugin ]; then docker compose "$@"; else docker-compose "$@"; fi
}
containers() { docker ps -q --no-trunc --filter "label=com.docker.compose.project=$project" "$@"; }
main_container() {
  containers "$@" --filter "label=com.docker.compose.service=$service" --filter label=com.docker.compose.oneoff=False |
    head -n 1
}
sweep() {
  command -v docker > /dev/null || return 0
  of="label=com.docker.compose.project=$project"
  left=$(docker ps -aq --filter "$of") || return 1
  [ -z "$left" ] || docker rm -f -v $left > /dev/null || return 1
  left=$(docker network ls -q --filter "$of") || return 1
  [ -z "$left" ] || docker network rm $left > /dev/null || return 1
  left=$(docker volume ls -q --filter "$of") || return 1
  [ -z "$left" ] || docker volume rm $left > /dev/null || return 1
}
`;

/**
 * Removes leftovers of servers that died while they created a sandbox or a snapshot: without a record, with a free
 * lock, and over an hour old. Every step holds the lock, so no live attempt looks like that.
 */
const REMOVE_DEAD = `
find "$base/snapshots" -maxdepth 1 -name '*.part' -mmin +60 -exec rm -f -- {} +
for old in $(find "$base/sandboxes" -maxdepth 1 -name '*.lock' -mmin +60); do
  dead=\${old##*/}; dead=\${dead%.lock}
  case $dead in *[!0-9a-f-]*) continue ;; esac
  [ ! -e "$base/sandboxes/$dead.json" ] || continue
  (
    dir="$base/sandboxes/$dead"; project="sandboxer-$dead"
    exec 9>> "$old" && flock -n 9 && sweep && rm -rf -- "$dir" "$dir.json.part" && rm -f -- "$old"
  ) || true
done
`;

/** Prints which compose there is, and creates an empty workspace. Leftovers of a failed attempt are removed first. */
export const PREPARE = `
for tool in tar gzip flock setsid sha256sum; do command -v "$tool" > /dev/null || die no_tool "$tool"; done
command -v docker > /dev/null || die no_docker ''
said=$(docker version --format '{{.Server.Version}}' 2>&1) || die docker_down "$(last "$said")"
if docker compose version > /dev/null 2>&1; then compose_kind=plugin
elif docker-compose version > /dev/null 2>&1; then compose_kind=standalone
else die no_compose ''; fi
said=$(mkdir -p "$base/sandboxes" "$base/snapshots" 2>&1) || die no_base "$said"
${REMOVE_DEAD}
again=
[ ! -e "$lock_file" ] || again=yes
lock
[ ! -e "$record" ] || die exists "$dir"
[ -z "$again" ] || sweep || die left_over "$dir"
rm -rf -- "$dir" || die left_over "$dir"
said=$(mkdir -- "$dir" 2>&1) || die no_base "$said"
printf '%s' "$compose_kind"
`;

/** Standard input is the archive; owners of files on this machine mean nothing on the host. */
export const UNPACK_INPUT = `
lock
tar -x -p -o -f - -C "$dir" || die tar_failed ''
`;

/** `fresh`: the project did not exist before. */
export const UP = `
lock
[ -f "$dir/$compose_file" ] || die compose_missing "$compose_file"
services=$(compose config --services) || die compose_broken ''
printf '%s\\n' "$services" | grep -F -x -q -e "$service" || die no_service "$service"
if [ "$fresh" = no ]; then
  paused=$(containers --filter status=paused)
  [ -z "$paused" ] || docker unpause $paused > /dev/null || die up_failed ''
fi
compose up -d >&2 || die up_failed ''
printf '%s' "$record_text" > "$record.part" && mv -f -- "$record.part" "$record" || die no_base "$record"
`;

/** Prints the container that is ready. */
export const WAIT_READY = `
id=$(main_container -a) || die docker_down ''
[ -n "$id" ] || die exited 'the container was removed'
format='{{.State.Status}} {{.State.ExitCode}} {{if .State.Health}}{{.State.Health.Status}}{{else}}none{{end}}'
tries=0
while :; do
  state=$(docker inspect -f "$format" "$id") || die exited 'the container was removed'
  case $state in
    running*none | running*healthy | paused*) [ "\${state% unhealthy}" != "$state" ] || { printf '%s' "$id"; exit 0; } ;;
    created* | restarting* | running*) ;;
    *) die exited "$state $(docker logs --tail 1 "$id" 2>&1)" ;;
  esac
  tries=$((tries + 1))
  [ "$tries" -lt 600 ] || die not_ready "$state"
  sleep 0.2
done
`;

/** Waits until the service's container, if known, has ended; a restart by its policy is not an end. */
export const WAIT_END = `
id=$container
[ -n "$id" ] || id=$(main_container -a) || die docker_down ''
[ -n "$id" ] || { printf gone; exit 0; }
while :; do
  docker wait "$id" > /dev/null 2>&1
  sleep 1
  state=$(docker inspect -f '{{.State.Status}} {{.State.ExitCode}} {{.State.OOMKilled}}' "$id" 2> /dev/null) || state=gone
  case $state in running* | restarting* | paused* | created*) ;; *) printf '%s' "$state"; exit 0 ;; esac
done
`;

/** By a separate process that nobody waits for; in the container where the other was started, if that is known. */
export const SEND_SIGNAL = `
if [ -n "$container" ]; then id=$(docker ps -q --no-trunc --filter "id=$container"); else id=$(main_container); fi
[ -n "$id" ] || die exited 'the container was removed'
docker exec -d "$id" sh -c "kill -$signal $target" >&2
`;

export const TEARDOWN = `
[ -d "$base/sandboxes" ] || exit 0
lock
sweep || die left_over ''
rm -rf -- "$dir" "$record" "$record.part" || die left_over ''
rm -f -- "$lock_file"
`;

/** Paused while it is packed, so that the artifact is one point in time; whatever happens, it is resumed afterwards. */
export const PACK = `
lock
[ -d "$dir" ] || die exited 'its workspace is missing'
part="$artifact.part"
running=
trap 'rm -f -- "$part"; [ -z "$running" ] || docker unpause $running > /dev/null' EXIT
trap 'exit 1' TERM HUP INT PIPE
if [ "$paused" = no ]; then
  running=$(containers --filter status=running)
  [ -z "$running" ] || docker pause $running > /dev/null || die docker_down ''
fi
mkdir -p "$base/snapshots" || die no_base "$base/snapshots"
tar -C "$dir" -c -z -f "$part" . || die tar_failed ''
sum=$(sha256sum < "$part") || exit 1
size=$(wc -c < "$part") || exit 1
mv -f -- "$part" "$artifact" || exit 1
printf '%s %s' "\${sum%% *}" "$size"
`;

export const SEND_ARTIFACT = `cat -- "$artifact"`;
export const REMOVE_ARTIFACT = `rm -f -- "$artifact" "$artifact.part"`;

/** Prints the digest of the artifact if it exists, otherwise nothing. */
export const ARTIFACT_DIGEST = `
[ -f "$artifact" ] || exit 0
sum=$(sha256sum < "$artifact") || exit 1
printf '%s' "\${sum%% *}"
`;

/** Standard input is the artifact. An incomplete one is removed. */
export const RECEIVE_ARTIFACT = `
lock
whole=
trap '[ -n "$whole" ] || rm -f -- "$artifact"' EXIT
trap 'exit 1' TERM HUP INT PIPE
cat > "$artifact" || exit 1
sum=$(sha256sum < "$artifact") || exit 1
[ "\${sum%% *}" = "$sha256" ] || die artifact_damaged 'its digest is another'
whole=yes
`;

export const UNPACK_ARTIFACT = `
lock
tar -x -z -p -f "$artifact" -C "$dir" || die tar_failed ''
`;

export const PAUSE = `
lock
running=$(containers --filter status=running) || die docker_down ''
[ -z "$running" ] || docker pause $running > /dev/null || die docker_down ''
`;
export const RESUME = `
lock
paused=$(containers --filter status=paused) || die docker_down ''
[ -z "$paused" ] || docker unpause $paused > /dev/null || die docker_down ''
`;
export const STOP = `
lock
paused=$(containers --filter status=paused)
[ -z "$paused" ] || docker unpause $paused > /dev/null
compose stop >&2 || die docker_down ''
`;
export const READ_RECORD = `[ ! -f "$record" ] || cat -- "$record"`;

type Variables = Readonly<Record<string, string>>;

export type ScriptTarget = Pick<
  ComposeProject,
  "sandboxId" | "baseDir" | "remoteDir" | "recordFile" | "lockFile" | "project" | "placement"
> &
  Partial<Pick<ComposeProject, "compose" | "composeFile" | "service">>;

/** A script with the variables of its sandbox in front. */
export function scriptFor(target: ScriptTarget, body: string, more: Variables = {}): string {
  const variables: Variables = {
    base: target.baseDir,
    dir: target.remoteDir,
    record: target.recordFile,
    lock_file: target.lockFile,
    project: target.project,
    sandbox_id: target.sandboxId,
    docker_host: target.placement.docker_host ?? "",
    compose_kind: target.compose ?? "plugin",
    compose_file: target.composeFile ?? "compose.yaml",
    service: target.service ?? "",
    ...more,
  };
  const assignments = Object.entries(variables).map(([name, value]) => `${name}=${quoteForShell(value)}\n`);
  return `${assignments.join("")}${COMMON}${body}`;
}
