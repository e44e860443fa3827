import { once } from "node:events";
import { mkdir, open } from "node:fs/promises";
import { createServer, type Server, type Socket } from "node:net";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { temporaryFolder } from "../../../../../../test/kit/temporary-folder.ts";

export interface FakeKernel {
  readonly folder: string;
  readonly path: string;
  /** The messages that it got. */
  readonly got: string[];
  readonly server: Server;
}

/** Something that listens like the kernel of a sandbox `test`, and answers each message like this. */
export async function fakeKernel(answer: (socket: Socket, message: string) => void): Promise<FakeKernel> {
  // Longer than the path of a socket may be.
  const folder = join(await temporaryFolder(), "f".repeat(120));
  await mkdir(folder);
  const got: string[] = [];
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    socket.on("error", () => {});
    let text = "";
    socket.on("data", (chunk) => (text += chunk.toString()));
    socket.once("end", () => {
      got.push(text);
      answer(socket, text);
    });
  });
  const opened = await open(folder, "r");
  server.listen(`/proc/self/fd/${opened.fd}/runsc-test.sock`);
  await once(server, "listening");
  await opened.close();
  onTestFinished(() => void server.close());
  return { folder, path: join(folder, "runsc-test.sock"), got, server };
}
