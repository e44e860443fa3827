import type { ComposeProject } from "./handle.ts";

/** `docker compose ARGS…` for a project, as a command that sshd runs. */
export function composeArgv(project: ComposeProject, args: readonly string[]): string[] {
  const { docker_host: dockerHost } = project.placement;
  return [
    ...(dockerHost === undefined ? [] : ["env", `DOCKER_HOST=${dockerHost}`]),
    ...(project.compose === "plugin" ? ["docker", "compose"] : ["docker-compose"]),
    `--project-name=${project.project}`,
    `--file=${project.remoteDir}/${project.composeFile}`,
    `--project-directory=${project.remoteDir}`,
    ...args,
  ];
}
