import { Option } from "commander";
import { SandboxerError } from "@sandboxer/protocol/errors";
import { defineCommand } from "../define-command.ts";
import { duration, integer } from "../options/parse.ts";
import { findSandbox } from "../targets/sandbox.ts";

export const urlCommand = defineCommand({
  arguments: "<sandbox> <port>",
  examples: [
    "sandboxer url web 8000",
    "sandboxer url web 8000 --expires 1h",
    "sandboxer url web 8000 --public",
    "sandboxer url web 8000 --private",
    "sandboxer url web 8000 --withdraw",
  ],
  details:
    "Anyone with the URL can open the port until it expires. A paused sandbox is resumed by the first request.\n" +
    "With --public the URL has no signature and does not expire. --private ends that; earlier signed links still work.\n" +
    "--withdraw ends all links to the port. Open connections stay open.",
  options: (command) =>
    command
      .addOption(
        new Option("--expires <DURATION>", "how long the URL works, up to 30d (default 1h)").argParser(duration),
      )
      .addOption(new Option("--public", "let anyone open the port from now on").conflicts(["private", "expires"]))
      .addOption(new Option("--private", "require a key, a token or a signed URL again"))
      .addOption(
        new Option("--withdraw", "end all links to the port; print no URL").conflicts(["public", "private", "expires"]),
      ),
  async run(run) {
    const client = await run.client();
    const { id, public_ports: before } = await findSandbox(client, run.argument(0));
    const port = portOf(run.argument(1));
    if (run.flag("withdraw")) {
      await client.call("withdrawPortLinks", { params: { id }, query: { port } });
      run.print({ withdrawn: port }, () => `All links to port ${port} are withdrawn.\n`);
      return;
    }
    const others = before.filter((each) => each !== port);
    if (run.flag("public") || run.flag("private")) {
      const body = { public_ports: run.flag("public") ? [...others, port] : others };
      await client.call("updateSandbox", { params: { id }, body });
    }
    const expires = run.text("expires");
    const body = { port, ...(expires === undefined ? {} : { expires }) };
    const link = await client.call("createPortLink", { params: { id }, body });
    run.print(link, ({ url }) => `${url}\n`);
    if (link.expires_at !== null) run.say(`Anyone with this URL can open the port until ${link.expires_at}.`);
    else if (expires !== undefined) run.say("The port is public, so the URL has no end. Use --private first.");
  },
});

/** An argument, not an option: commander does not check it. */
export function portOf(text: string): number {
  try {
    return integer(1, 65_535)(text);
  } catch {
    throw new SandboxerError("bad_request", `${JSON.stringify(text)} is not a port.`, {
      hint: "Ports are numbers from 1 to 65535.",
    });
  }
}
