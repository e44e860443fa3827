import { setTimeout as delay } from "node:timers/promises";
import { SandboxerError } from "@sandboxer/protocol";
import type { AcquireRequest, Health, SandboxEnd } from "../backend.ts";
import { stays } from "../stays.ts";
import { fits, handleRecordSchema, recordText } from "../extension/handle-records.ts";
import type {
  ExtensionCommand,
  ExtensionHandle,
  ExtensionProcess,
  ExtensionRecord,
  ExtensionSnapshot,
  ExtensionTools,
  SandboxExtension,
  SnapshotRequest,
} from "../extension/extension.ts";
import { packWorkspace, provideArtifact, readArtifactRecord, removeArtifact } from "./artifacts.ts";
import { ConnectionPool } from "./ssh-connection.ts";
import { execInService } from "./exec.ts";
import { type ComposeProject, fromHandle, toHandle } from "./handle.ts";
import { parsePlacement } from "./placement.ts";
import { refusedBy } from "./remote-errors.ts";
import { artifactPath, remotePaths } from "./remote-paths.ts";
import { openRepository, packFolder } from "./repository.ts";
import { runRemote } from "./run-remote.ts";
import * as scripts from "./scripts.ts";
import { ServiceContainers } from "./service-containers.ts";

const RETRY_MS = 5000;

export interface ComposeSshOptions {
  /** Folders that may contain `inputs.repo`. */
  readonly repositoryFolders: readonly string[];
  /** Folder for the sockets of shared connections; short, because socket names are limited. */
  readonly temporaryDirectory: string;
}

/** A compose project on a host that is reached by ssh. See docs/reference/compose-ssh.md. */
export class ComposeSshExtension implements SandboxExtension {
  readonly name = "compose-ssh";
  readonly selfHosted = true;
  readonly snapshotKind = "workspace-tar";
  readonly shell = true;
  readonly network = true;
  readonly #options: ComposeSshOptions;
  readonly #connections: ConnectionPool;
  readonly #containers = new ServiceContainers();

  constructor(options: ComposeSshOptions) {
    this.#options = options;
    this.#connections = new ConnectionPool(options.temporaryDirectory);
  }

  async probe(): Promise<Health> {
    return { ok: true, summary: "Compose projects on hosts that the profile's placement names, over ssh." };
  }

  async provision(request: AcquireRequest, tools: ExtensionTools): Promise<ExtensionHandle> {
    const placement = parsePlacement(request.spec.placement);
    const repository = await openRepository(request.spec.inputs?.["repo"], placement, this.#options.repositoryFolders);
    return this.#make(request, tools, repository, async (project) => {
      const script = scripts.scriptFor(project, scripts.UNPACK_INPUT);
      const input = counted(packFolder(repository.folder), tools);
      await this.#run(project, script, tools.signal, input);
    });
  }

  async restoreFromSnapshot(
    request: AcquireRequest,
    snapshot: ExtensionSnapshot,
    tools: ExtensionTools,
  ): Promise<ExtensionHandle> {
    const placement = parsePlacement(request.spec.placement);
    const record = readArtifactRecord(snapshot.record);
    const { compose_file: composeFile = record.compose_file, service = record.service } = placement;
    return this.#make(request, tools, { composeFile, service }, async (project) => {
      const connection = await this.#connections.get(placement);
      const { artifact, brought } = await provideArtifact(connection, project, record, snapshot, tools);
      try {
        await this.#run(project, scripts.scriptFor(project, scripts.UNPACK_ARTIFACT, { artifact }), tools.signal);
      } finally {
        // No record of it remains; if this fails, the next sandbox that is created here removes it.
        if (brought) await removeArtifact(connection, project, artifact).catch(() => {});
      }
    });
  }

  async forgetSnapshot(
    given: ExtensionRecord,
    place: Readonly<Record<string, string>>,
    tools: ExtensionTools,
  ): Promise<void> {
    const record = readArtifactRecord(given);
    try {
      const placement = parsePlacement(place);
      const artifact = artifactPath(placement.base_dir, record.snapshot_id);
      if (placement.host !== record.host || artifact !== record.remote_path) {
        throw new SandboxerError("wrong_state", "the profile with its placement has changed.");
      }
      // Belongs to no sandbox: only the artifact is touched.
      const sandboxId = record.snapshot_id;
      const target = { ...remotePaths(placement.base_dir, sandboxId), sandboxId, placement };
      await this.#run(target, scripts.scriptFor(target, scripts.REMOVE_ARTIFACT, { artifact }), tools.signal);
    } catch (thrown) {
      throw stays(`The artifact ${record.remote_path} on ${record.host}`, thrown);
    }
  }

  async waitReady(handle: ExtensionHandle, tools: ExtensionTools): Promise<void> {
    this.#containers.note(fromHandle(handle).sandboxId, await this.#script(handle, scripts.WAIT_READY, tools));
  }

  async teardown(handle: ExtensionHandle, tools: ExtensionTools): Promise<void> {
    this.#containers.forget(fromHandle(handle).sandboxId);
    await this.#script(handle, scripts.TEARDOWN, tools);
  }

  async find(request: AcquireRequest, tools: ExtensionTools): Promise<ExtensionHandle | undefined> {
    if (request.spec.placement?.["host"] === undefined) return undefined;
    const placement = parsePlacement(request.spec.placement);
    const { sandboxId } = request;
    const target = { ...remotePaths(placement.base_dir, sandboxId), sandboxId, placement };
    const text = await this.#run(target, scripts.scriptFor(target, scripts.READ_RECORD), tools.signal);
    const record = handleRecordSchema.safeParse(text === "" ? undefined : JSON.parse(text));
    if (!record.success || !fits(request, record.data.spec_hash)) return undefined;
    // The request says how to reach the host; the host only says what was created.
    const { compose, compose_file: file, service } = record.data.handle;
    const project = fromHandle({
      ...toHandle({ ...target, compose: "plugin", composeFile: "", service: "" }),
      compose: compose ?? "",
      compose_file: file ?? "",
      service: service ?? "",
    });
    await this.#up(project, request, tools, { fresh: false });
    const handle = toHandle(project);
    await this.waitReady(handle, tools);
    return handle;
  }

  waitEnd(handle: ExtensionHandle, tools: ExtensionTools): Promise<SandboxEnd> {
    let known = this.#containers.get(fromHandle(handle).sandboxId) ?? "";
    const look = (): Promise<string> => {
      const container = known;
      // After a lost connection it is looked up again: it may be another one by then.
      known = "";
      return this.#script(handle, scripts.WAIT_END, tools, { container });
    };
    return watchService(look, tools.signal);
  }

  supportsSnapshots(): boolean {
    return true;
  }

  async snapshot(handle: ExtensionHandle, request: SnapshotRequest, tools: ExtensionTools): Promise<ExtensionRecord> {
    const project = fromHandle(handle);
    return packWorkspace(await this.#connections.get(project.placement), project, request, tools);
  }

  async exec(handle: ExtensionHandle, command: ExtensionCommand): Promise<ExtensionProcess> {
    const project = fromHandle(handle);
    return execInService(await this.#connections.get(project.placement), project, command, this.#containers);
  }

  async pause(handle: ExtensionHandle, tools: ExtensionTools): Promise<void> {
    await this.#script(handle, scripts.PAUSE, tools);
  }

  async resume(handle: ExtensionHandle, tools: ExtensionTools): Promise<void> {
    await this.#script(handle, scripts.RESUME, tools);
  }

  async stop(handle: ExtensionHandle, tools: ExtensionTools): Promise<void> {
    await this.#script(handle, scripts.STOP, tools);
  }

  close(): Promise<void> {
    return this.#connections.close();
  }

  /** Creates and fills a workspace on the host, and starts its project. On failure the host is as it was. */
  async #make(
    request: AcquireRequest,
    tools: ExtensionTools,
    { composeFile, service }: Pick<ComposeProject, "composeFile" | "service">,
    fill: (project: ComposeProject) => Promise<void>,
  ): Promise<ExtensionHandle> {
    const placement = parsePlacement(request.spec.placement);
    const { sandboxId } = request;
    const target = { ...remotePaths(placement.base_dir, sandboxId), sandboxId, placement, composeFile, service };
    try {
      tools.progress({ phase: "preparing" });
      const kind = await this.#run(target, scripts.scriptFor(target, scripts.PREPARE), tools.signal);
      const project: ComposeProject = { ...target, compose: kind === "standalone" ? kind : "plugin" };
      await fill(project);
      tools.progress({ phase: "starting" });
      await this.#up(project, request, tools, { fresh: true });
      return toHandle(project);
    } catch (thrown) {
      if (!hasEffects(thrown)) throw thrown;
      throw await this.#undo({ ...target, compose: "plugin" }, thrown);
    }
  }

  async #up(
    project: ComposeProject,
    request: AcquireRequest,
    tools: ExtensionTools,
    { fresh }: { readonly fresh: boolean },
  ): Promise<void> {
    const record = recordText(request, toHandle(project));
    const script = scripts.scriptFor(project, scripts.UP, { record_text: record, fresh: fresh ? "yes" : "no" });
    await this.#run(project, script, tools.signal);
  }

  /** Cleans up after a failed attempt, over a new connection if the old one is lost. */
  async #undo(project: ComposeProject, cause: unknown): Promise<unknown> {
    try {
      await this.#run(project, scripts.scriptFor(project, scripts.TEARDOWN));
      return cause;
    } catch (thrown) {
      const [failed, left] = [cause, thrown].map((error) => (error instanceof Error ? error.message : String(error)));
      const code = cause instanceof SandboxerError ? cause.code : "backend_unavailable";
      const message = `${failed} Then ${project.remoteDir} and the project ${project.project} could not be removed: ${left}`;
      return new SandboxerError(code, message, {
        cause,
        hint: "Another attempt with the same id removes them first. Otherwise remove them there by hand.",
      });
    }
  }

  async #script(
    handle: ExtensionHandle,
    body: string,
    tools: ExtensionTools,
    variables: Readonly<Record<string, string>> = {},
  ): Promise<string> {
    const project = fromHandle(handle);
    return this.#run(project, scripts.scriptFor(project, body, variables), tools.signal);
  }

  async #run(
    { placement }: Pick<ComposeProject, "placement">,
    script: string,
    signal?: AbortSignal,
    input?: AsyncIterable<Uint8Array>,
  ): Promise<string> {
    const connection = await this.#connections.get(placement);
    const options = { ...(signal === undefined ? {} : { signal }), ...(input === undefined ? {} : { input }) };
    return runRemote(connection, script, options);
  }
}

/**
 * A host that was never reached, or that refused before it began, has nothing to remove; another's sandbox must stay.
 */
function hasEffects(thrown: unknown): boolean {
  if (!(thrown instanceof SandboxerError)) return true;
  const nothingMade = ["no_tool", "no_docker", "docker_down", "no_compose", "no_base", "exists", "busy"];
  return thrown.details["connected"] !== false && !nothingMade.includes(refusedBy(thrown) ?? "");
}

async function* counted(data: AsyncIterable<Uint8Array>, tools: ExtensionTools): AsyncGenerator<Uint8Array> {
  let doneBytes = 0;
  for await (const chunk of data) {
    doneBytes += chunk.length;
    tools.progress({ phase: "uploading", doneBytes });
    yield chunk;
  }
}

/** Waits until the service has ended, across lost connections. The script prints `STATUS EXIT_CODE OOM`, or `gone`. */
async function watchService(wait: () => Promise<string>, signal: AbortSignal): Promise<SandboxEnd> {
  for (;;) {
    try {
      return endOf(await wait());
    } catch {
      await delay(RETRY_MS, undefined, { signal, ref: false });
    }
  }
}

function endOf(state: string): SandboxEnd {
  const [status, code, outOfMemory] = state.split(" ");
  if (status === "gone") return { reason: "crashed", message: "the container of its service was removed." };
  const reason = outOfMemory === "true" ? "out_of_memory" : "crashed";
  return { reason, message: `its service ended with exit code ${code ?? "unknown"}.` };
}
