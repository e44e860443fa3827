import { Option } from "commander";
import { SandboxerError } from "@sandboxer/protocol/errors";
import { defineCommand } from "../define-command.ts";
import { onStopRequests } from "../stop-signals.ts";
import { sandboxId } from "../targets/sandbox.ts";
import { portOf } from "./url.ts";

export const forwardCommand = defineCommand({
  arguments: "<sandbox> <port>",
  examples: [
    "sandboxer forward web 8000",
    "sandboxer forward db 5432:15432",
    "sandboxer forward web 8000:0 --address 127.0.0.1",
  ],
  details:
    "Listens on this machine and passes each TCP connection on to the port inside, until Ctrl-C.\n" +
    "PORT:LOCAL chooses the local port; 0 picks a free one. A paused sandbox is resumed by the first connection.",
  options: (command) =>
    command.addOption(new Option("--address <ADDRESS>", "local address to listen on").default("127.0.0.1")),
  async run(run) {
    const { port, localPort } = portsOf(run.argument(1));
    const { sandboxHandle } = await import("../process/open-sandbox.ts");
    const { forwardPort } = await import("@sandboxer/client/node");
    const sandbox = await sandboxHandle(run, await sandboxId(await run.client(), run.argument(0)), false);
    const stopped = Promise.withResolvers<void>();
    const stopListening = onStopRequests(
      run.io,
      () => stopped.resolve(),
      () => run.io.exit(130),
    );
    await using forwarded = await forwardPort(sandbox, port, {
      localPort,
      localAddress: run.text("address") ?? "127.0.0.1",
      onError: ({ message, hint }) => run.io.stderr(`sandboxer: ${message} ${hint}\n`),
    });
    run.print({ address: forwarded.address, port: forwarded.port }, ({ address }) => `${address}:${forwarded.port}\n`);
    run.say(`Forwarding to port ${port} of ${sandbox.record.name ?? sandbox.id}. Press Ctrl-C to stop.`);
    await stopped.promise;
    stopListening();
  },
});

function portsOf(text: string): { readonly port: number; readonly localPort: number } {
  const [inside = "", local, more] = text.split(":");
  if (more !== undefined) throw new SandboxerError("bad_request", "Write it as PORT or PORT:LOCAL.");
  const port = portOf(inside);
  return { port, localPort: local === undefined ? port : local === "0" ? 0 : portOf(local) };
}
