import type { IncomingMessage } from "node:http";
import type { Readable } from "node:stream";
import { setTimeout as delay } from "node:timers/promises";
import type { z } from "zod";
import { parseEngineAddress } from "./address.ts";
import {
  Committed,
  Container,
  ContainerStats,
  CreatedContainer,
  EngineInfo,
  Image,
  ListedContainers,
  ListedImages,
  ListedNetworks,
  Waited,
} from "./answers.ts";
import { attachmentOf, type Attachment } from "./attachment.ts";
import type { ContainerConfig } from "./container-config.ts";
import { refused, statusOf } from "./engine-errors.ts";
import { EngineHttp, type EngineCall } from "./engine-http.ts";
import { followProgress } from "./progress.ts";

/** The newest version of the API that this was written for; an older engine is asked in its own. */
const API_VERSION = "1.45";
const SLOW_MS = 30 * 60_000;
const PROBE_MS = 10_000;
const PAUSE_ATTEMPTS = 20;
const PAUSE_AGAIN_MS = 50;

type ImageConfig = Pick<ContainerConfig, "Labels"> & Partial<Pick<ContainerConfig, "Env">>;

interface Signalled {
  readonly signal?: AbortSignal | undefined;
}

/** The used part of the Docker Engine API, as functions. Every failure is a `SandboxerError`. */
export class DockerEngine {
  readonly address: string;
  readonly #http: EngineHttp;
  #version: Promise<string> | undefined;

  constructor(address: string) {
    this.address = address;
    this.#http = new EngineHttp(parseEngineAddress(address));
  }

  close(): void {
    this.#http.close();
  }

  info(): Promise<EngineInfo> {
    return this.#json({ what: "say what it is", method: "GET", path: "/info", timeoutMs: PROBE_MS }, EngineInfo);
  }

  async networkExists(name: string): Promise<boolean> {
    const call: EngineCall = { what: "list its networks", method: "GET", path: "/networks", timeoutMs: PROBE_MS };
    const networks = await this.#json(call, ListedNetworks);
    return networks.some(({ Name }) => Name === name);
  }

  /** Cannot be aborted: it would be unknown whether the container was created. */
  async createContainer(name: string, config: ContainerConfig): Promise<string> {
    const call: EngineCall = { what: "make a container", method: "POST", path: "/containers/create", query: { name } };
    return (await this.#json({ ...call, json: config }, CreatedContainer)).Id;
  }

  /** Unpacks a tar archive into a folder of a container, running or not. */
  async putArchive(
    id: string,
    folder: string,
    content: Uint8Array | Readable,
    { signal }: Signalled = {},
  ): Promise<void> {
    const upload = { type: "application/x-tar", content };
    const path = `/containers/${id}/archive`;
    await this.#do({
      what: "put files into a container",
      method: "PUT",
      path,
      query: { path: folder },
      upload,
      signal,
      timeoutMs: SLOW_MS,
    });
  }

  /** A folder of a container, running or not, as a tar archive whose names begin with the folder's own. */
  getArchive(id: string, folder: string, { signal }: Signalled = {}): Promise<IncomingMessage> {
    const call: EngineCall = { what: "get files out of a container", method: "GET", path: `/containers/${id}/archive` };
    return this.#stream({ ...call, query: { path: folder }, signal, timeoutMs: SLOW_MS });
  }

  /** Whether the engine sees this file in the container's filesystem. */
  async hasPath(id: string, path: string): Promise<boolean> {
    const call: EngineCall = { what: "look into a container", method: "HEAD", path: `/containers/${id}/archive` };
    return (await this.#do({ ...call, query: { path }, accepted: [404] })).statusCode === 200;
  }

  async attach(id: string, { signal }: Signalled = {}): Promise<Attachment> {
    const query = { stream: 1, stdin: 1, stdout: 1, stderr: 1 };
    const path = await this.#path(`/containers/${id}/attach`);
    signal?.throwIfAborted();
    return attachmentOf(await this.#http.hijack({ what: "attach to a container", method: "POST", path, query }));
  }

  async start(id: string, { signal }: Signalled = {}): Promise<void> {
    await this.#container(id, "start", { what: "start a container", accepted: [304], signal });
  }

  /** Continues from {@link createCheckpoint}; the files of the checkpoint are in the container's folder. */
  async startFromCheckpoint(id: string, checkpoint: string, { signal }: Signalled = {}): Promise<void> {
    const what = "start a container from its checkpoint";
    await this.#container(id, "start", { what, query: { checkpoint }, signal, timeoutMs: SLOW_MS });
  }

  /** Saves memory and processes, not files, in the engine's folder of the container, which keeps running. */
  async createCheckpoint(id: string, checkpoint: string): Promise<void> {
    const json = { CheckpointID: checkpoint, Exit: false };
    await this.#container(id, "checkpoints", { what: "save a container's memory", json, timeoutMs: SLOW_MS });
  }

  /** A missing one is not an error. */
  async removeCheckpoint(id: string, checkpoint: string): Promise<void> {
    const path = `/containers/${id}/checkpoints/${checkpoint}`;
    await this.#do({ what: "remove a checkpoint", method: "DELETE", path, accepted: [404] });
  }

  /** Kills it at once; the container stays. */
  async stop(id: string): Promise<void> {
    await this.#container(id, "stop", {
      what: "stop a container",
      query: { t: 0, signal: "SIGKILL" },
      accepted: [304],
    });
  }

  /** runc gives up a freeze that takes long, as on a busy machine, and lets everything continue: it is tried again. */
  async pause(id: string): Promise<void> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.#container(id, "pause", { what: "pause a container" });
      } catch (error) {
        if (attempt === PAUSE_ATTEMPTS || !(error as Error).message.includes("unable to freeze")) throw error;
        await delay(PAUSE_AGAIN_MS);
      }
    }
  }

  async unpause(id: string): Promise<void> {
    await this.#container(id, "unpause", { what: "resume a container" });
  }

  /** Disconnects a container from its network at once. */
  async disconnect(id: string, network: string): Promise<void> {
    const path = `/networks/${encodeURIComponent(network)}/disconnect`;
    const json = { Container: id, Force: true };
    await this.#do({ what: "take a container off its network", method: "POST", path, json });
  }

  async rename(id: string, name: string): Promise<void> {
    await this.#container(id, "rename", { what: "rename a container", query: { name } });
  }

  /** Waits until it is not running. */
  async wait(id: string, { signal }: Signalled = {}): Promise<void> {
    const path = `/containers/${id}/wait`;
    const query = { condition: "not-running" };
    await this.#json({ what: "wait for a container", method: "POST", path, query, timeoutMs: 0, signal }, Waited);
  }

  /** Undefined if there is none. */
  async container(id: string, { size = false } = {}): Promise<Container | undefined> {
    const call: EngineCall = {
      what: "look at a container",
      method: "GET",
      path: `/containers/${id}/json`,
      query: { size },
    };
    return unlessMissing(this.#json(call, Container));
  }

  /** Running or not, with all these labels (`NAME` or `NAME=VALUE`). */
  listContainers(labels: readonly string[]): Promise<z.output<typeof ListedContainers>> {
    const query = { all: true, filters: JSON.stringify({ label: labels }) };
    return this.#json(
      { what: "list its containers", method: "GET", path: "/containers/json", query },
      ListedContainers,
    );
  }

  stats(id: string): Promise<z.output<typeof ContainerStats>> {
    const path = `/containers/${id}/stats`;
    const query = { stream: false, "one-shot": true };
    return this.#json({ what: "measure a container", method: "GET", path, query }, ContainerStats);
  }

  /** Ends it if necessary, and removes it with its anonymous volumes. A missing one is not an error. */
  async removeContainer(id: string): Promise<void> {
    const query = { force: true, v: true };
    const call: EngineCall = { what: "remove a container", method: "DELETE", path: `/containers/${id}`, query };
    await this.#do({ ...call, accepted: [404, 409] });
  }

  /** Creates an image of a container's files. */
  async commit(id: string, repo: string, tag: string, config: ImageConfig): Promise<void> {
    const query = { container: id, repo, tag, pause: false };
    const call: EngineCall = { what: "save a container", method: "POST", path: "/commit", query, json: config };
    await this.#json({ ...call, timeoutMs: SLOW_MS }, Committed);
  }

  /** Undefined if there is none. */
  async image(name: string): Promise<Image | undefined> {
    const path = `/images/${encodeURI(name)}/json`;
    return unlessMissing(this.#json({ what: `look at the image ${name}`, method: "GET", path }, Image));
  }

  listImages(labels: readonly string[]): Promise<z.output<typeof ListedImages>> {
    const query = { filters: JSON.stringify({ label: labels }) };
    return this.#json({ what: "list its images", method: "GET", path: "/images/json", query }, ListedImages);
  }

  /** An image with its base layers, as a tar archive. */
  exportImage(name: string, { signal }: Signalled = {}): Promise<IncomingMessage> {
    const path = `/images/${encodeURI(name)}/get`;
    return this.#stream({ what: `export the image ${name}`, method: "GET", path, signal, timeoutMs: SLOW_MS });
  }

  /** Loads the result of {@link exportImage}. */
  async loadImage(archive: Readable, { signal }: Signalled = {}): Promise<void> {
    const upload = { type: "application/x-tar", content: archive };
    const call: EngineCall = {
      what: "load an image",
      method: "POST",
      path: "/images/load",
      query: { quiet: true },
      upload,
    };
    await this.#progress({ ...call, signal, timeoutMs: SLOW_MS });
  }

  /** Creates an image from a tar archive with a root filesystem. `changes`: a line of a Dockerfile. */
  async importImage(
    repo: string,
    tag: string,
    archive: Readable | Uint8Array,
    { signal, changes }: Signalled & { readonly changes?: string } = {},
  ): Promise<void> {
    const upload = { type: "application/x-tar", content: archive };
    const query = { fromSrc: "-", repo, tag, changes };
    const call: EngineCall = { what: "import an image", method: "POST", path: "/images/create", query, upload };
    await this.#progress({ ...call, signal, timeoutMs: SLOW_MS });
  }

  /** Pulls an image from its registry. */
  async pull(name: string, { signal }: Signalled = {}): Promise<void> {
    const tagged = name.includes("@") || /:[^/]+$/.test(name);
    const query = { fromImage: name, tag: tagged ? undefined : "latest" };
    const call: EngineCall = { what: `get the image ${name}`, method: "POST", path: "/images/create", query };
    await this.#progress({ ...call, signal, timeoutMs: SLOW_MS });
  }

  /** A missing one, or one that a container needs, is not an error. */
  async removeImage(name: string): Promise<void> {
    const path = `/images/${encodeURI(name)}`;
    await this.#do({ what: `remove the image ${name}`, method: "DELETE", path, accepted: [404, 409] });
  }

  async #container(id: string, verb: string, call: Omit<EngineCall, "method" | "path">): Promise<void> {
    await this.#do({ method: "POST", path: `/containers/${id}/${verb}`, ...call });
  }

  async #json<Schema extends z.ZodType>(call: EngineCall, schema: Schema): Promise<z.output<Schema>> {
    return this.#http.json({ ...call, path: await this.#path(call.path) }, schema);
  }

  async #do(call: EngineCall): Promise<IncomingMessage> {
    return this.#http.status({ ...call, path: await this.#path(call.path) });
  }

  async #stream(call: EngineCall): Promise<IncomingMessage> {
    return this.#http.stream({ ...call, path: await this.#path(call.path) });
  }

  /** Errors may follow after the headers, as lines of the response. */
  async #progress(call: EngineCall): Promise<void> {
    const error = await followProgress(await this.#stream(call), call.what);
    if (error !== undefined) throw refused(call.what, 500, error);
  }

  async #path(path: string): Promise<string> {
    this.#version ??= this.#negotiate();
    try {
      return `/v${await this.#version}${path}`;
    } catch (error) {
      // It may work the next time.
      this.#version = undefined;
      throw error;
    }
  }

  async #negotiate(): Promise<string> {
    const call: EngineCall = { what: "answer", method: "GET", path: "/_ping", timeoutMs: PROBE_MS };
    const { headers } = await this.#http.status(call);
    const version = /^1\.(\d{1,3})$/.exec(String(headers["api-version"]))?.[1];
    const newest = Number(API_VERSION.slice(2));
    return version === undefined ? API_VERSION : `1.${Math.min(Number(version), newest)}`;
  }
}

async function unlessMissing<Value>(asked: Promise<Value>): Promise<Value | undefined> {
  try {
    return await asked;
  } catch (error) {
    if (statusOf(error) === 404) return undefined;
    throw error;
  }
}
