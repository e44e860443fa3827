import { describe, expectTypeOf, test } from "vitest";
import type {
  CreateOptions,
  EventRecord,
  ExecResult,
  OperationRecord,
  SandboxerError,
  SandboxProcess,
  SandboxRecord,
  SnapshotRecord,
} from "../src/index.ts";
import { Sandbox, Sandboxer, type ErrorCode } from "../src/index.ts";

/** Never run: the compiler is the test (`tsc --noEmit`, and what vitest infers). */
const expectTypes = (_work: () => unknown): void => {};
declare const client: Sandboxer;
declare const sandbox: Sandbox;

describe("call, from the protocol's table", () => {
  test("answers have the types of their schemas", () => {
    expectTypes(() => {
      expectTypeOf(client.call("getSandbox", { params: { id: "x" } })).resolves.toHaveProperty("created_at");
      expectTypeOf(client.call("sandboxStats", { params: { id: "x" } })).resolves.toEqualTypeOf<{
        memory_bytes: number;
        disk_bytes: number;
        cpu_ms: number;
      }>();
      expectTypeOf(client.call("deleteSnapshot", { params: { id: "x" } })).resolves.toEqualTypeOf<undefined>();
    });
  });

  test("options that a route does not have do not compile", () => {
    expectTypes(() => [
      client.call("listSandboxes", {}),
      client.call("listSandboxes", { query: { limit: 5, state: "stored" } }),
      // @ts-expect-error there is no such state
      client.call("listSandboxes", { query: { state: "asleep" } }),
      // @ts-expect-error a limit is a number
      client.call("listSandboxes", { query: { limit: "5" } }),
      // @ts-expect-error the id is missing
      client.call("getSandbox", {}),
      // @ts-expect-error there is no such route
      client.call("getSandboxes", {}),
      // @ts-expect-error its answer is bytes: sandbox.files.read
      client.call("readFile", { params: { id: "x" }, query: { path: "/" } }),
      // @ts-expect-error no body is taken
      client.call("getSandbox", { params: { id: "x" }, body: {} }),
      // @ts-expect-error the body is needed
      client.call("rewindSandbox", { params: { id: "x" } }),
      client.call("resumeSandbox", { params: { id: "x" } }),
      client.call("writeFile", { params: { id: "x" }, query: { path: "/a" }, body: new Uint8Array() }),
    ]);
  });
});

describe("sandboxes", () => {
  test("names are in camelCase, and user-defined keys are unchanged", () => {
    expectTypeOf<SandboxRecord["expiresAt"]>().toEqualTypeOf<string | null>();
    expectTypeOf<SandboxRecord["flags"]["enableSandboxHandoff"]>().toEqualTypeOf<boolean>();
    expectTypeOf<SandboxRecord["labels"]>().toEqualTypeOf<Record<string, string>>();
    expectTypeOf<SandboxRecord>().not.toHaveProperty("expires_at");
    expectTypeOf<SnapshotRecord["sizeBytes"]>().toEqualTypeOf<number>();
    expectTypeOf<EventRecord["data"]>().toEqualTypeOf<Record<string, unknown>>();
    expectTypeOf<OperationRecord["doneBytes"]>().toEqualTypeOf<number | null>();
    expectTypeOf<CreateOptions["idleTimeout"]>().toEqualTypeOf<string | number | undefined>();
    expectTypeOf<CreateOptions["env"]>().toEqualTypeOf<Record<string, string> | undefined>();
  });

  test("creation accepts the server's settings and its URL", () => {
    expectTypes(() => [
      Sandbox.create(),
      Sandbox.create({ url: "http://x", apiKey: "k", image: "host", ttl: "4h", onProgress: ({ phase }) => phase }),
      Sandbox.create({ client, resources: { cpus: 2 }, keep: true }),
      // @ts-expect-error names are in camelCase here
      Sandbox.create({ idle_timeout: 5 }),
      // @ts-expect-error no such network
      Sandbox.create({ network: "internet" }),
      // @ts-expect-error a client has a URL of its own
      new Sandboxer({ client }),
    ]);
  });

  test("exec is its result when awaited, and yields lines and bytes when iterated", () => {
    expectTypes(async () => {
      const execution = sandbox.exec("ls");
      expectTypeOf<Awaited<typeof execution>>().toEqualTypeOf<ExecResult>();
      expectTypeOf<ExecResult["exitCode"]>().toEqualTypeOf<number | null>();
      for await (const line of execution.lines()) expectTypeOf(line).toEqualTypeOf<string>();
      for await (const { data, stream } of execution.chunks()) {
        expectTypeOf(data).toEqualTypeOf<Uint8Array>();
        expectTypeOf(stream).toEqualTypeOf<"stdout" | "stderr">();
      }
      expectTypeOf(sandbox.spawn(["ls"])).resolves.toEqualTypeOf<SandboxProcess>();
      sandbox.exec({ language: "python", code: "1" });
      // @ts-expect-error there is no such language
      sandbox.exec({ language: "cobol", code: "1" });
      // @ts-expect-error a number is no command
      sandbox.exec(1);
    });
  });

  test("they can be used with await using", () => {
    expectTypeOf<Sandbox>().toExtend<AsyncDisposable>();
    expectTypeOf<SandboxProcess>().toExtend<AsyncDisposable>();
  });
});

test("errors have a code of the table, a hint and details", () => {
  expectTypeOf<SandboxerError["code"]>().toEqualTypeOf<ErrorCode>();
  expectTypeOf<"lease_held">().toExtend<ErrorCode>();
  expectTypeOf<"no_such_code">().not.toExtend<ErrorCode>();
  expectTypeOf<SandboxerError["hint"]>().toEqualTypeOf<string>();
});
