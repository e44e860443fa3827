import { createSocket } from "node:dgram";
import { getServers } from "node:dns";
import { randomInt } from "node:crypto";
import { isIP } from "node:net";
import { questionMessage, type Question } from "./dns-message.ts";

const TIMEOUT_MS = 5_000;
const ANSWER = 0x8000;

/** Asks the first nameserver, and gives its answer the id of the question. `nameservers`: empty, the host's. */
export async function askNameserver(question: Question, nameservers: readonly string[]): Promise<Buffer> {
  const [server = ""] = nameservers.length > 0 ? nameservers : getServers();
  const [, address = server, port = "53"] = isIP(server) === 0 ? (/^\[?(.*?)\]?:(\d+)$/.exec(server) ?? []) : [];
  const id = randomInt(65_536);
  const socket = createSocket(isIP(address) === 6 ? "udp6" : "udp4");
  const answered = Promise.withResolvers<Buffer>();
  const timer = setTimeout(() => answered.reject(new Error("the nameserver does not answer")), TIMEOUT_MS);
  // Connected: answers from elsewhere are not received.
  socket.on("error", answered.reject).connect(Number(port), address, () => socket.send(questionMessage(question, id)));
  socket.on("message", (message) => {
    const isAnswer = message.length >= 12 && message.readUInt16BE(0) === id && message.readUInt16BE(2) >= ANSWER;
    if (!isAnswer) return;
    message.writeUInt16BE(question.id, 0);
    answered.resolve(message);
  });
  try {
    return await answered.promise;
  } finally {
    clearTimeout(timer);
    socket.close();
  }
}
