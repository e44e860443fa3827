import { randomUUID } from "node:crypto";
import type { FastifyInstance, FastifyRequest } from "fastify";
import { asSandboxerError } from "@sandboxer/protocol";
import { ConnectError } from "../connect/connect-error.ts";
import { ConnectService } from "../connect/connect-routes.ts";
import type { E2bServices } from "../e2b-services.ts";
import type { EnvdCalls } from "./envd-calls.ts";
import { requireFolder } from "./filesystem-service.ts";
import * as messages from "./messages.ts";
import { absolutePath } from "./paths.ts";
import { Watcher, type WatcherOptions } from "./watcher.ts";

/** Watchers that clients read by polling: of one sandbox, and of all. A lost client never removes its own. */
const MAX_PER_SANDBOX = 64;
const MAX_WATCHERS = 4096;
const FORGOTTEN_MS = 60 * 60_000;

interface Polled {
  readonly sandboxId: string;
  readonly watched: WatcherOptions & { readonly path: string };
  watcher: Watcher;
  usedMs: number;
}

/** Watching folders of a sandbox: `filesystem.Filesystem`, as streams and by polling. */
export function registerWatchService(app: FastifyInstance, services: E2bServices, calls: EnvdCalls): void {
  const service = new ConnectService(app, "filesystem.Filesystem", services.log);
  const polled = new PolledWatchers();
  app.addHook("onClose", async () => polled.closeAll());

  const open = async (request: FastifyRequest, path: string, options: WatcherOptions) => {
    const { sandbox, files } = await calls.filesOf(request);
    const folder = absolutePath(files.account.home, path);
    await requireFolder(files, folder);
    return { sandbox, watcher: await Watcher.open(files, folder, options) };
  };

  service.serverStream("WatchDir", messages.watchMessage, async ({ request, message }, begin) => {
    const { sandbox, watcher } = await open(request, message.path, message);
    const release = services.manager.hold(sandbox, "a watched folder");
    try {
      const stream = begin();
      stream.keepAlive({ keepalive: {} }, calls.keepAliveMs(request));
      await stream.send({ start: {} });
      while (!stream.closed.aborted) {
        for (const event of await watcher.take()) await stream.send({ filesystem: event });
        await watcher.ready(stream.closed);
      }
    } catch (error) {
      // The sandbox was paused or deleted.
      if (asSandboxerError(error).code !== "sandbox_failed") throw error;
      begin().cut();
    } finally {
      watcher.close();
      release();
    }
  });

  service.unary("CreateWatcher", messages.watchMessage, async ({ request, message }) => {
    const { sandbox, watcher } = await open(request, message.path, message);
    return { watcherId: polled.add(sandbox.id, message, watcher) };
  });

  service.unary("GetWatcherEvents", messages.watcherMessage, async ({ request, message }) => {
    const sandbox = await calls.sandboxOf(request);
    const found = polled.find(sandbox.id, message.watcherId);
    try {
      return { events: await found.watcher.take() };
    } catch (error) {
      if (asSandboxerError(error).code !== "sandbox_failed") throw error;
      // The sandbox was paused, and nothing has changed in it meanwhile.
      found.watcher = (await open(request, found.watched.path, found.watched)).watcher;
      return { events: [] };
    }
  });

  service.unary("RemoveWatcher", messages.watcherMessage, async ({ request, message }) => {
    const sandbox = await calls.sandboxOf(request);
    polled.remove(sandbox.id, message.watcherId);
    return {};
  });
}

class PolledWatchers {
  readonly #all = new Map<string, Polled>();

  add(sandboxId: string, watched: Polled["watched"], watcher: Watcher): string {
    this.#forgetUnused();
    const own = [...this.#all.values()].filter((each) => each.sandboxId === sandboxId);
    if (own.length >= MAX_PER_SANDBOX || this.#all.size >= MAX_WATCHERS) {
      watcher.close();
      throw new ConnectError(
        "resource_exhausted",
        "Too many folders are watched. Remove watchers that are not needed.",
      );
    }
    const id = randomUUID();
    this.#all.set(id, { sandboxId, watched, watcher, usedMs: performance.now() });
    return id;
  }

  /** Throws `not_found`, also for a watcher of another sandbox. */
  find(sandboxId: string, id: string): Polled {
    const found = this.#all.get(id);
    if (found?.sandboxId !== sandboxId) throw new ConnectError("not_found", "There is no watcher with this id.");
    found.usedMs = performance.now();
    return found;
  }

  remove(sandboxId: string, id: string): void {
    this.find(sandboxId, id).watcher.close();
    this.#all.delete(id);
  }

  closeAll(): void {
    for (const { watcher } of this.#all.values()) watcher.close();
    this.#all.clear();
  }

  #forgetUnused(): void {
    for (const [id, { watcher, usedMs }] of this.#all) {
      if (performance.now() - usedMs < FORGOTTEN_MS) continue;
      watcher.close();
      this.#all.delete(id);
    }
  }
}
