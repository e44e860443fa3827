import { createReadStream } from "node:fs";
import { resolve } from "node:path";
import { Readable } from "node:stream";
import { InvalidArgumentError, Option } from "commander";
import { errorOfResponse, unreachable, type Transport } from "@sandboxer/client/transport";
import { SandboxerError } from "@sandboxer/protocol/errors";
import { defineCommand } from "../define-command.ts";
import type { Run } from "../run.ts";

const METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD"];

export const apiCommand = defineCommand({
  arguments: "<method> <path>",
  examples: [
    "sandboxer api GET /v1/sandboxes",
    `sandboxer api POST /v1/sandboxes --body '{"name":"web"}'`,
    "sandboxer api PUT '/v1/sandboxes/ID/files?path=/tmp/x' --body-file ./x -H content-type=application/octet-stream",
  ],
  details: "Prints the response body unchanged on stdout. docs/reference/http.md and /openapi.json list the routes.",
  options: (command) =>
    command
      .option("-b, --body <TEXT>", "request body; JSON unless a content-type header is given")
      .option("--body-file <PATH>", "read the request body from a file; `-` reads stdin")
      .addOption(new Option("-H, --header <NAME=VALUE>", "request header (repeatable)").argParser(header))
      .option("--include", "print the response status and headers on stderr"),
  async run(run) {
    const method = run.argument(0).toUpperCase();
    const path = run.argument(1);
    if (!METHODS.includes(method))
      throw new SandboxerError("bad_request", `${method} is not one of ${METHODS.join(", ")}.`);
    if (!path.startsWith("/")) throw new SandboxerError("bad_request", `The path "${path}" must begin with /.`);
    const response = await send(run, await run.client(), method, path);
    if (run.flag("include")) {
      run.say(`${response.status} ${response.statusText}`);
      for (const [name, value] of response.headers) run.say(`${name}: ${value}`);
    }
    if (!response.ok) throw await errorOfResponse(response);
    for await (const bytes of response.body ?? []) await run.io.writeBytes("stdout", bytes);
    if (run.io.stdoutIsTerminal) run.io.stdout("\n");
  },
});

async function send(run: Run, client: Transport, method: string, path: string): Promise<Response> {
  const body = bodyOf(run);
  const { url, apiKey } = client;
  try {
    return await fetch(url.replace(/\/+$/, "") + path, {
      method,
      headers: {
        ...(typeof body === "string" ? { "content-type": "application/json" } : {}),
        ...(apiKey === undefined ? {} : { authorization: `Bearer ${apiKey}`, "sandboxer-key": apiKey }),
        ...run.value<Record<string, string>>("header"),
      },
      ...(body === undefined ? {} : { body, duplex: "half" }),
    });
  } catch (error) {
    throw unreachable(url, error);
  }
}

function bodyOf(run: Run): string | ReadableStream<Uint8Array> | undefined {
  const text = run.text("body");
  const file = run.text("bodyFile");
  if (text !== undefined && file !== undefined) {
    throw new SandboxerError("bad_request", "Give --body or --body-file, not both.");
  }
  if (file === undefined) return text;
  const source =
    file === "-" ? Readable.from(run.io.stdin.bytes()) : createReadStream(resolve(run.io.workingDirectory, file));
  return Readable.toWeb(source) as ReadableStream<Uint8Array>;
}

function header(text: string, before: Readonly<Record<string, string>> = {}): Record<string, string> {
  const [, name, value] = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+)[=:]\s*(.*)$/.exec(text) ?? [];
  if (name === undefined || value === undefined) throw new InvalidArgumentError("Write it as NAME=VALUE.");
  return { ...before, [name.toLowerCase()]: value };
}
