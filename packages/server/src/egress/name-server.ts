import { isIPv4 } from "node:net";
import { parseAddress, type IpAddress } from "@sandboxer/protocol";
import {
  A,
  AAAA,
  answerMessage,
  NO_ERROR,
  NO_SUCH_NAME,
  parseQuestion,
  SERVER_FAILURE,
  type Question,
} from "./dns-message.ts";
import type { Egress } from "./egress.ts";
import type { GivenAddresses } from "./given-addresses.ts";
import { hostName, UnreachableError } from "./outside.ts";

const DNS_PORT = 53;
const MAX_ASKED = 64;
const MAX_ADDRESSES = 8;
/** Mail servers, texts, services, and what belongs to a zone. They lead to names, which are asked for again. */
const PASSED_ON: ReadonlySet<number> = new Set([2, 5, 6, 15, 16, 33, 35, 257]);

/**
 * The nameserver of one sandbox with a network of its own. It resolves only names that the policy could allow, because
 * a question carries data out, and it answers with addresses that the sandbox may reach. It says nothing about IPv6,
 * which such a sandbox does not have.
 */
export class NameServer {
  readonly #egress: Egress;
  readonly #given: GivenAddresses;
  #asked = 0;

  constructor(egress: Egress, given: GivenAddresses) {
    this.#egress = egress;
    this.#given = given;
  }

  /** Undefined: no answer, because the message is not a question, or too many are open. */
  async answer(message: Buffer): Promise<Buffer | undefined> {
    const question = parseQuestion(message);
    if (question === undefined || this.#asked >= MAX_ASKED) return undefined;
    this.#asked += 1;
    try {
      return await this.#answer(question);
    } catch (error) {
      return answerMessage(question, codeOf(error), []);
    } finally {
      this.#asked -= 1;
    }
  }

  async #answer(question: Question): Promise<Buffer> {
    const { name: asked, type } = question;
    const name = hostName(asked);
    if (name === undefined || parseAddress(name) !== undefined) return answerMessage(question, NO_SUCH_NAME, []);
    // RFC 6761: the sandbox itself.
    if (/(?:^|\.)localhost$/.test(name)) return answerMessage(question, NO_ERROR, type === A ? ["127.0.0.1"] : []);
    const verdict = this.#egress.judge.judgeHost({ name });
    if (!verdict.allowed) {
      this.#refuse(name, type, verdict.rule);
      return answerMessage(question, NO_SUCH_NAME, []);
    }
    if (PASSED_ON.has(type)) return this.#egress.outside.ask(question);
    if (type !== A && type !== AAAA) return answerMessage(question, NO_ERROR, []);
    const found = (await this.#egress.outside.addressesOf(name)).filter(isIPv4).slice(0, MAX_ADDRESSES);
    if (type === AAAA) return answerMessage(question, NO_ERROR, []);
    const rules = found.map((address) => this.#ruleAgainst(name, parseAddress(address)!));
    const usable = found.filter((_, index) => rules[index] === undefined);
    this.#given.note(name, usable);
    if (usable.length > 0 || found.length === 0) return answerMessage(question, NO_ERROR, usable);
    this.#refuse(name, type, rules[0] ?? "", found[0]);
    return answerMessage(question, NO_SUCH_NAME, []);
  }

  #ruleAgainst(name: string, address: IpAddress): string | undefined {
    const rule = this.#egress.outside.refusalOf(address);
    if (rule !== undefined) return rule;
    const verdict = this.#egress.judge.judgeHost({ name, address });
    return verdict.allowed ? undefined : verdict.rule;
  }

  /** Programs ask for IPv6 too; one of the two is enough. */
  #refuse(name: string, type: number, rule: string, address?: string): void {
    if (type !== AAAA) this.#egress.refused({ name, port: DNS_PORT, rule: `${rule} (name lookup)`, address });
  }
}

function codeOf(error: unknown): number {
  const { code } = ((error instanceof UnreachableError ? error.cause : error) ?? {}) as NodeJS.ErrnoException;
  if (code === "ENOTFOUND") return NO_SUCH_NAME;
  return code === "ENODATA" ? NO_ERROR : SERVER_FAILURE;
}
