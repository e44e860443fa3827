import type { FastifyInstance, FastifyRequest } from "fastify";
import type { Logger } from "pino";
import type { z } from "zod";
import { E2bError } from "../errors.ts";
import { CONNECT_STATUS, ConnectError, connectErrorBody, connectErrorOf } from "./connect-error.ts";
import { ConnectStream, STREAM_TYPE } from "./connect-stream.ts";
import { readMessages, readOneMessage } from "./envelope.ts";

/** The maximum size of one message, as for other JSON. */
export const MAX_MESSAGE_BYTES = 8 * 1024 * 1024;

/** The input of a call: the request for its headers, and its message. */
export interface ConnectCall<Message> {
  readonly request: FastifyRequest;
  readonly message: Message;
}

/** Registers the methods of a service. Errors of E2B's own, such as a sandbox that does not run, stay as they are. */
export class ConnectService {
  readonly #app: FastifyInstance;
  readonly #name: string;
  readonly #log: Pick<Logger, "error">;

  constructor(app: FastifyInstance, name: string, log: Pick<Logger, "error">) {
    this.#app = app;
    this.#name = name;
    this.#log = log;
  }

  unary<Schema extends z.ZodType>(
    method: string,
    schema: Schema,
    answer: (call: ConnectCall<z.infer<Schema>>) => Promise<unknown>,
  ): void {
    this.#app.post(`/${this.#name}/${method}`, async (request, reply) => {
      try {
        return await answer({ request, message: parsed(schema, request.body) });
      } catch (error) {
        if (error instanceof E2bError) throw error;
        const refused = this.#errorOf(error, method);
        return reply.code(CONNECT_STATUS[refused.code]).send(connectErrorBody(refused));
      }
    });
  }

  /** `answer` sends messages and returns when the stream is complete. An error before the first message is possible. */
  serverStream<Schema extends z.ZodType>(
    method: string,
    schema: Schema,
    answer: (call: ConnectCall<z.infer<Schema>>, open: () => ConnectStream) => Promise<void>,
  ): void {
    this.#stream(method, async (request, open) => {
      const message = parsed(
        schema,
        await readOneMessage(request.body as AsyncIterable<Uint8Array>, MAX_MESSAGE_BYTES),
      );
      await answer({ request, message }, open);
    });
  }

  /** The client sends any number of messages, and gets one. */
  clientStream(method: string, answer: (request: FastifyRequest, messages: AsyncGenerator) => Promise<unknown>): void {
    this.#stream(method, async (request, open) => {
      const messages = readMessages(request.body as AsyncIterable<Uint8Array>, MAX_MESSAGE_BYTES);
      const result = await answer(request, messages);
      const stream = open();
      await stream.send(result);
      stream.end();
    });
  }

  #stream(method: string, answer: (request: FastifyRequest, open: () => ConnectStream) => Promise<void>): void {
    this.#app.post(`/${this.#name}/${method}`, async (request, reply) => {
      let opened: ConnectStream | undefined;
      const open = (): ConnectStream => (opened ??= new ConnectStream(reply));
      try {
        checkStream(request);
        await answer(request, open);
      } catch (error) {
        if (error instanceof E2bError && opened === undefined) throw error;
        open().end(this.#errorOf(error, method));
      }
    });
  }

  #errorOf(thrown: unknown, method: string): ConnectError {
    const error = connectErrorOf(thrown);
    // Other errors are the client's, or explain themselves.
    if (error.code === "internal" && error !== thrown)
      this.#log.error({ err: thrown, route: `/${this.#name}/${method}` }, "a call of E2B failed");
    return error;
  }
}

/** A message as its schema says; missing fields have their defaults. */
export function parsed<Schema extends z.ZodType>(schema: Schema, message: unknown): z.infer<Schema> {
  const result = schema.safeParse(message ?? {});
  if (result.success) return result.data;
  const { path = [], message: why = "" } = result.error.issues[0] ?? {};
  throw new ConnectError("invalid_argument", `The message is invalid at ${path.join(".") || "its top"}: ${why}`);
}

function checkStream({ headers }: FastifyRequest): void {
  const encoding = headers["connect-content-encoding"] ?? "identity";
  if (encoding !== "identity") {
    throw new ConnectError("unimplemented", "Compressed messages are not supported. Send them uncompressed.");
  }
  if (headers["content-type"]?.split(";")[0] === STREAM_TYPE) return;
  throw new ConnectError("invalid_argument", `Send a stream as ${STREAM_TYPE}.`);
}
