import type { ComposeProject } from "./handle.ts";

/**
 * `docker exec` in the container that compose labels as the service's: `compose exec` does the same, but starts three
 * programs for it, and reads the compose file, which may be broken by now.
 */
const IN_SERVICE = `of=label=com.docker.compose
ids=$(docker ps -q --no-trunc --filter "$of.project=$1" --filter "$of.service=$2" --filter "$of.oneoff=False") || exit
script=$3; set -- $ids
[ "$#" -gt 0 ] || { echo 'the service is not running' >&2; exit 1; }
exec docker exec -i "$1" sh -c "$script"
`;

/** Through a shell, which reports a missing docker in the same way. */
const IN_CONTAINER = `exec docker exec -i "$1" sh -c "$2"`;

/** A process in a container of the service. */
export interface ServiceProcess {
  readonly project: ComposeProject;
  /** Undefined: the service's current one. */
  readonly container: string | undefined;
  readonly pid: number;
}

/**
 * Runs a script in a shell of the service, as a command for sshd. A known container need not be looked up, which takes
 * as long as running something in it.
 */
export function serviceArgv(project: ComposeProject, script: string, container?: string): string[] {
  const { docker_host: dockerHost } = project.placement;
  const argv =
    container === undefined
      ? ["sh", "-c", IN_SERVICE, "sh", project.project, project.service, script]
      : ["sh", "-c", IN_CONTAINER, "sh", container, script];
  return dockerHost === undefined ? argv : ["env", `DOCKER_HOST=${dockerHost}`, ...argv];
}
