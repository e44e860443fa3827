import { CONTEXT_LANGUAGES, e2bContextSchema, e2bExecuteSchema, SandboxerError } from "@sandboxer/protocol";
import type { ContextLanguage } from "@sandboxer/protocol";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { z } from "zod";
import type { ManagedProcess } from "../../../manager/processes/managed-process.ts";
import type { Sandbox } from "../../../manager/sandbox.ts";
import type { E2bServices } from "../e2b-services.ts";
import { E2bError } from "../errors.ts";
import { executionLines } from "./execution-lines.ts";

/** Where contexts start that name no folder. */
const FOLDER = "/workspace";

interface ContextRequest {
  readonly Params: { readonly id: string };
}

/** The code interpreter: what E2B's clients send to port 49999. `request.e2bTarget` names the sandbox. */
export function registerInterpreter(app: FastifyInstance, services: E2bServices): void {
  takeJson(app);
  app.get("/health", (_request, reply) => reply.code(204).send());

  app.route({
    method: "POST",
    url: "/execute",
    handler: async (request, reply) => {
      const body = bodyOf(e2bExecuteSchema, request);
      const sandbox = await sandboxOf(services, request);
      if (body.context_id !== undefined && body.language !== undefined) {
        throw new E2bError(400, "Give context_id or language, not both.");
      }
      const interpreter =
        body.context_id === undefined
          ? await defaultContext(services, sandbox, languageOf(body.language))
          : await contextOf(services, sandbox, body.context_id);
      return execute(services, sandbox, interpreter, { code: body.code, env: body.env_vars ?? {} }, reply);
    },
  });

  app.route({
    method: "POST",
    url: "/contexts",
    handler: async (request) => {
      const { language, cwd } = bodyOf(e2bContextSchema, request);
      const sandbox = await sandboxOf(services, request);
      const facts = { language: languageOf(language), workingFolder: cwd };
      return contextView(await services.manager.interpreter.create(sandbox, facts));
    },
  });

  app.route({
    method: "GET",
    url: "/contexts",
    handler: async (request) => {
      const sandbox = await sandboxOf(services, request);
      return (await services.manager.interpreter.list(sandbox)).map(contextView);
    },
  });

  app.route<ContextRequest>({
    method: "POST",
    url: "/contexts/:id/restart",
    handler: async (request, reply) => {
      const sandbox = await sandboxOf(services, request);
      await services.manager.interpreter.restart(sandbox, request.params.id);
      return reply.type("application/json").send("null");
    },
  });

  app.route<ContextRequest>({
    method: "DELETE",
    url: "/contexts/:id",
    handler: async (request, reply) => {
      const sandbox = await sandboxOf(services, request);
      await services.manager.interpreter.delete(sandbox, request.params.id);
      return reply.type("application/json").send("null");
    },
  });
}

/** Some clients send a JSON content type without a body. */
function takeJson(app: FastifyInstance): void {
  const parseJson = app.getDefaultJsonParser("error", "error");
  app.removeAllContentTypeParsers();
  app.addContentTypeParser<string>(["application/json", "*"], { parseAs: "string" }, (request, body, done) =>
    body === "" ? done(null) : void parseJson(request, body, done),
  );
}

function bodyOf<Schema extends z.ZodType>(schema: Schema, { body }: FastifyRequest): z.output<Schema> {
  const parsed = schema.safeParse(body ?? {});
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  throw new E2bError(400, `The body is not valid: ${issue?.path.join(".") ?? ""}: ${issue?.message ?? ""}`);
}

/** Calls about contexts have no other credential than the traffic token. */
async function sandboxOf(services: E2bServices, request: FastifyRequest): Promise<Sandbox> {
  const { sandboxId = "" } = request.e2bTarget ?? {};
  services.requireToken("traffic", sandboxId, request);
  const sandbox = await services.running(sandboxId);
  services.manager.touch(sandbox);
  return sandbox;
}

function languageOf(given = "python"): ContextLanguage {
  const short: Readonly<Record<string, ContextLanguage>> = { js: "javascript", ts: "typescript", sh: "bash" };
  const language = CONTEXT_LANGUAGES.find((name) => name === (short[given] ?? given));
  if (language !== undefined) return language;
  throw new E2bError(
    400,
    `The language ${JSON.stringify(given)} is not supported. Use ${CONTEXT_LANGUAGES.join(", ")}.`,
  );
}

/** A context that has ended begins again without its variables, as E2B's do. */
async function contextOf({ manager }: E2bServices, sandbox: Sandbox, id: string): Promise<ManagedProcess> {
  const found = await manager.interpreter.get(sandbox, id);
  return found.running ? found : manager.interpreter.restart(sandbox, id);
}

async function defaultContext(
  { manager }: E2bServices,
  sandbox: Sandbox,
  language: ContextLanguage,
): Promise<ManagedProcess> {
  return (await manager.interpreter.default(sandbox, language)).interpreter;
}

function execute(
  { manager }: E2bServices,
  sandbox: Sandbox,
  interpreter: ManagedProcess,
  cell: { readonly code: string; readonly env: Readonly<Record<string, string>> },
  reply: FastifyReply,
): FastifyReply {
  const gone = new AbortController();
  reply.raw.once("close", () => {
    if (reply.raw.writableFinished) return;
    // While this client still has its turn: the next cell may already wait for it.
    if (interpreter.activity?.cell === running.id) manager.interpreter.interrupt(interpreter);
    gone.abort(new SandboxerError("timeout", "The client disconnected."));
  });
  const { signal } = gone;
  const running = manager.interpreter.run(sandbox, interpreter, { ...cell, timeoutMs: undefined, signal });
  const release = manager.hold(sandbox, "a cell");
  return reply.type("application/x-ndjson").send(executionLines(running.events, { signal, onClose: release }));
}

function contextView({ id, traits }: ManagedProcess): object {
  return { id, language: traits.context?.language, cwd: traits.context?.workingFolder ?? FOLDER };
}
