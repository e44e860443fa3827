import type { Command } from "commander";
import { SandboxerError } from "@sandboxer/protocol/errors";
import type { Transport } from "@sandboxer/client/transport";
import { commandAfterDashes } from "./command-words.ts";
import type { Io } from "./io.ts";

/** A running command: its input, and its services. */
export class Run {
  readonly io: Io;
  readonly json: boolean;
  readonly setExitCode: (code: number) => void;
  readonly #values: Readonly<Record<string, unknown>>;
  readonly #arguments: readonly unknown[];
  /** The words after `--`, of a command that takes them apart from its arguments. */
  readonly afterDashes: readonly string[];
  #client: Promise<Transport> | undefined;

  constructor(io: Io, command: Command, given: readonly unknown[], setExitCode: (code: number) => void) {
    this.io = io;
    this.#values = command.optsWithGlobals();
    this.#arguments = given;
    this.afterDashes = commandAfterDashes(command);
    this.json = this.#values["json"] === true;
    this.setExitCode = setExitCode;
  }

  /** An argument that commander has checked. */
  argument(index: number): string {
    const value = this.#arguments[index];
    if (typeof value !== "string") throw new SandboxerError("bad_request", `Argument ${index + 1} is missing.`);
    return value;
  }

  optionalArgument(index: number): string | undefined {
    const value = this.#arguments[index];
    return typeof value === "string" ? value : undefined;
  }

  /** The last argument, if it is repeatable. */
  rest(index: number): readonly string[] {
    return (this.#arguments[index] as readonly string[] | undefined) ?? [];
  }

  flag(name: string): boolean {
    return this.#values[name] === true;
  }

  text(name: string): string | undefined {
    const value = this.#values[name];
    return typeof value === "string" ? value : undefined;
  }

  number(name: string): number | undefined {
    const value = this.#values[name];
    return typeof value === "number" ? value : undefined;
  }

  /** The parsed value of an option. */
  // oxlint-disable-next-line typescript/no-unnecessary-type-parameters -- the parser knows the type, commander does not
  value<T>(name: string): T | undefined {
    return this.#values[name] as T | undefined;
  }

  /** The server that this command talks to. */
  client(): Promise<Transport> {
    this.#client ??= import("./api/connect.ts").then(({ connect }) =>
      connect(this.io, {
        url: this.text("url"),
        context: this.text("context"),
        keyFile: this.text("apiKeyFile"),
        encryptionKeyFile: this.text("encryptionKeyFile"),
      }),
    );
    return this.#client;
  }

  /** The result: JSON for programs, otherwise formatted for people. */
  print<T>(data: T, format: (data: T) => string): void {
    this.io.stdout(this.json ? `${JSON.stringify(data)}\n` : format(data));
  }

  /** Messages for people, never data: nothing with --json. */
  say(text: string): void {
    if (!this.json) this.io.stderr(`${text}\n`);
  }
}
