import type { FastifyInstance } from "fastify";
import { ConnectError } from "../connect/connect-error.ts";
import { ConnectService } from "../connect/connect-routes.ts";
import type { E2bServices } from "../e2b-services.ts";
import type { EnvdCalls } from "./envd-calls.ts";
import { entryView } from "./entry-view.ts";
import * as messages from "./messages.ts";
import { absolutePath } from "./paths.ts";

/** Depths beyond this list whole trees anyway. */
const MAX_DEPTH = 1000;

/** Files and folders of a sandbox: `filesystem.Filesystem`, except for watching. */
export function registerFilesystemService(app: FastifyInstance, services: E2bServices, calls: EnvdCalls): void {
  const service = new ConnectService(app, "filesystem.Filesystem", services.log);

  service.unary("Stat", messages.pathMessage, async ({ request, message }) => {
    const { files } = await calls.filesOf(request);
    return { entry: entryView(await files.stat(absolutePath(files.account.home, message.path))) };
  });

  service.unary("ListDir", messages.listMessage, async ({ request, message }) => {
    const { files } = await calls.filesOf(request);
    const path = absolutePath(files.account.home, message.path);
    await requireFolder(files, path);
    const entries = await files.list(path, Math.min(Math.max(message.depth, 1), MAX_DEPTH));
    return { entries: entries.map(entryView) };
  });

  service.unary("MakeDir", messages.pathMessage, async ({ request, message }) => {
    const { files } = await calls.filesOf(request);
    const path = absolutePath(files.account.home, message.path);
    const existing = await files.find(path);
    if (existing?.kind === "folder") throw new ConnectError("already_exists", `The folder ${path} already exists.`);
    if (existing !== undefined) throw new ConnectError("invalid_argument", `${path} exists and is not a folder.`);
    return { entry: entryView(await files.makeFolder(path)) };
  });

  service.unary("Move", messages.moveMessage, async ({ request, message }) => {
    const { files } = await calls.filesOf(request);
    const [from, to] = [message.source, message.destination].map((path) => absolutePath(files.account.home, path));
    return { entry: entryView(await files.move(from ?? "", to ?? "")) };
  });

  service.unary("Remove", messages.pathMessage, async ({ request, message }) => {
    const { files } = await calls.filesOf(request);
    await files.remove(absolutePath(files.account.home, message.path));
    return {};
  });
}

/** Throws `not_found`, or `invalid_argument` for anything else than a folder. */
export async function requireFolder(
  files: Awaited<ReturnType<EnvdCalls["filesOf"]>>["files"],
  path: string,
): Promise<void> {
  const { kind } = await files.stat(path);
  if (kind !== "folder") throw new ConnectError("invalid_argument", `The path ${path} is not a folder.`);
}
