import { spawn } from "node:child_process";
import { once } from "node:events";
import { constants } from "node:fs";
import { open } from "node:fs/promises";
import { connect, type Socket } from "node:net";
import { basename, dirname } from "node:path";
import { z } from "zod";
import type { CallOptions } from "../../../support/call-options.ts";
import { jsonOf } from "../../../support/json.ts";

/** Real answers have 50 bytes, or an error text with a Go stack. */
const MAX_ANSWER_BYTES = 64 * 1024;

export interface ControlMessage {
  readonly method: string;
  readonly argument: unknown;
  /** Open files for the kernel, and the agent binary that sends them. */
  readonly files?: { readonly descriptors: readonly number[]; readonly sender: string };
}

export interface ControlOptions extends CallOptions {
  readonly timeoutMs: number;
}

/** The message did nothing, because the kernel does not know it. A command may be tried instead. */
export class NotTaken extends Error {}

/** The message did nothing, because the kernel did not get it. */
export class NotDelivered extends NotTaken {}

/** The kernel took the message and reports a failure, or does not answer as an engine does. */
export class ControlFailure extends Error {}

const Answer = z.object({ success: z.boolean(), err: z.string().default(""), result: z.unknown() });

/** Errors of kernels that do not know a method, or not with such an argument. */
const UNKNOWN = /^(unknown method|json: )/;

/**
 * Sends one message to the kernel of a sandbox over its control socket, as runsc does, and returns the result. The
 * kernel may be hostile: its answer is limited in size and time, and files that it sends along are dropped.
 */
export async function sendControlMessage(
  socketPath: string,
  message: ControlMessage,
  { timeoutMs, signal }: ControlOptions,
): Promise<unknown> {
  const late = AbortSignal.timeout(timeoutMs);
  const limit = signal === undefined ? late : AbortSignal.any([late, signal]);
  try {
    return resultOf(await exchange(socketPath, message, limit));
  } catch (error) {
    signal?.throwIfAborted();
    if (error instanceof NotTaken || error instanceof ControlFailure) throw error;
    const why = limit.aborted ? `no answer within ${timeoutMs} ms` : (error as Error).message;
    throw new ControlFailure(`The kernel did not answer: ${why}`, { cause: error });
  }
}

async function exchange(
  socketPath: string,
  { method, argument, files }: ControlMessage,
  limit: AbortSignal,
): Promise<string> {
  const socket = await connectTo(socketPath, limit);
  const stop = (): unknown => socket.destroy(limit.reason as Error);
  limit.addEventListener("abort", stop, { once: true });
  try {
    const text = JSON.stringify({ method, arg: argument });
    if (files !== undefined) await sendFiles(socket, files, limit);
    // The kernel closes its side after the answer, because no other message can follow.
    socket.end(files === undefined ? text : text.slice(1));
    return await answerOn(socket);
  } finally {
    limit.removeEventListener("abort", stop);
    socket.destroy();
  }
}

/** By way of the folder's descriptor: the path of a Unix socket may have 107 bytes only. */
async function connectTo(path: string, signal: AbortSignal): Promise<Socket> {
  let socket: Socket | undefined;
  try {
    const folder = await open(dirname(path), constants.O_RDONLY | constants.O_DIRECTORY);
    try {
      socket = connect(`/proc/self/fd/${folder.fd}/${basename(path)}`);
      // Whoever reads or writes sees it too. Between the two, nobody does.
      socket.on("error", () => {});
      await once(socket, "connect", { signal });
      return socket;
    } finally {
      await folder.close();
    }
  } catch (error) {
    socket?.destroy();
    if (signal.aborted) throw error;
    throw new NotDelivered(`The control socket does not answer: ${(error as Error).message}`, { cause: error });
  }
}

/** Sends the first byte of the message with them. */
async function sendFiles(
  socket: Socket,
  { descriptors, sender }: NonNullable<ControlMessage["files"]>,
  signal: AbortSignal,
): Promise<void> {
  // Not as one of the first three descriptors, which Node makes blocking for both processes.
  const stdio = ["ignore" as const, "ignore" as const, "ignore" as const, socket, ...descriptors];
  const args = ["send-files", String(descriptors.length)];
  const child = spawn(sender, args, { stdio, env: {}, signal, killSignal: "SIGKILL" });
  const code = await new Promise((resolve) => child.once("error", resolve).once("exit", resolve));
  if (code !== 0) throw new NotDelivered(`The files could not be sent (${String(code)}).`);
}

async function answerOn(socket: Socket): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of socket as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > MAX_ANSWER_BYTES) throw new ControlFailure(`The answer is longer than ${MAX_ANSWER_BYTES} bytes.`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}

function resultOf(text: string): unknown {
  const answer = Answer.safeParse(jsonOf(text));
  if (!answer.success) throw new ControlFailure("The answer is not one of the engine.");
  const { success, err, result } = answer.data;
  if (success) return result;
  throw UNKNOWN.test(err) ? new NotTaken(err) : new ControlFailure(err);
}
