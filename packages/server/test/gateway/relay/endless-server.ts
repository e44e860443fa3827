import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { onTestFinished } from "vitest";

export const MIB = 1024 * 1024;

/** A server that answers every request with a text that does not end, as fast as it is read. */
export async function endlessServer(status: number, beginning: string) {
  const sent = { bytes: 0, open: 0 };
  const server = createServer((_request, response: ServerResponse) => {
    sent.open += 1;
    response.once("close", () => (sent.open -= 1));
    response.writeHead(status, { "content-type": "application/json" });
    response.write(beginning);
    const more = (): void => {
      while (!response.destroyed) {
        sent.bytes += MIB;
        if (!response.write("x".repeat(MIB))) return void response.once("drain", more);
      }
    };
    more();
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, sent };
}
