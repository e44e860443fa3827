import type { IncomingMessage } from "node:http";
import type { Readable } from "node:stream";
import type { Operation, OperationSubject } from "../../manager/observing/operations/operation.ts";
import type { OtherServer } from "../../manager/ownership/owner-elsewhere.ts";
import type { VerbOptions } from "../../manager/observing/operations/tracked.ts";
import type {
  BodyOf,
  OperationKind,
  ParamsOf,
  QueryOf,
  ResponseOf,
  Route,
  RouteName,
  Routes,
  Scope,
} from "@sandboxer/protocol";
import type { SharedCallsHolder } from "./shared-calls.ts";
import type { Principal } from "../access/principal.ts";

/** The authenticated caller. */
export interface Caller {
  readonly principal: Principal;
  /** The caller's address, for the audit log. */
  readonly address: string | undefined;
  /** Separates the idempotency keys of different callers. */
  readonly id: string;
  readonly scope: Scope;
  /** The caller's key, for calls to another server of the same store on its behalf. */
  readonly authorization: string | undefined;
}

/** One request, checked against its route. */
export interface Call<R extends Route> {
  readonly params: ParamsOf<R>;
  readonly query: QueryOf<R>;
  readonly body: BodyOf<R>;
  /** The bytes of the body, for routes that take a stream. */
  readonly stream: Readable;
  /** Aborts when the client disconnects. */
  readonly signal: AbortSignal;
  readonly caller: Caller;
  /** From `If-Sandbox-Epoch`. */
  readonly epoch: number | undefined;
  readonly idempotencyKey: string | undefined;
  /** From `Last-Event-ID`: the position of a browser's EventSource when it lost its connection. */
  readonly lastEventId: string | undefined;
  /** The record of the whole call, for routes that have one. Passed on to the manager. */
  readonly options: VerbOptions;
  /** The request as it came. */
  readonly message: IncomingMessage;
  /** Its body, if another server may carry the call out. */
  readonly placeable: Buffer | undefined;
  /** Whether the client's `Accept` names this type. */
  readonly accepts: (contentType: string) => boolean;
}

/** A response that is not JSON: a stream of bytes. */
export class StreamAnswer {
  readonly contentType: string;
  readonly body: Readable;
  readonly headers: Readonly<Record<string, string>>;

  constructor(contentType: string, body: Readable, headers: Readonly<Record<string, string>> = {}) {
    this.contentType = contentType;
    this.body = body;
    this.headers = headers;
  }
}

/** A route without a response body returns nothing. */
type Answer<R extends Route> = undefined extends ResponseOf<R> ? void : ResponseOf<R>;

export type Handler<R extends Route> = (call: Call<R>) => Promise<Answer<R> | StreamAnswer>;

/** The services behind the routes. */
export interface Service extends SharedCallsHolder {
  readonly handlers: Handlers;
  /** Undefined without a configured store. */
  readonly storedOperations:
    | {
        /** Keeps the end of an operation for the time after this server. */
        keep(operation: Operation, caller: Caller): Promise<void>;
      }
    | undefined;
  openOperation(kind: OperationKind, subject: OperationSubject, callerId: string): Operation;
  /** Undefined without a configured store. */
  readonly placement:
    | {
        /** The answer of another server that took it; undefined: this one may, too. Throws why nobody takes it. */
        elsewhere(name: RouteName, call: Call<Route>, refused: unknown): Promise<unknown>;
      }
    | undefined;
  /** The epoch of this server's ownership of a sandbox; undefined: it does not own it. */
  epochOf(sandboxId: string): number | undefined;
  /** Why a sandbox cannot be used here now; undefined: it can. */
  whyNotHere(sandboxId: string): Promise<unknown>;
  /** The server that owns a sandbox which is not on this server; undefined: none can be asked. */
  ownerElsewhere(sandboxId: string): Promise<OtherServer | undefined>;
  /** Waits while a sandbox is being handed off from or to this server. */
  untilArrived(sandboxId: string, signal: AbortSignal): Promise<void>;
  /** Whether this server has seen that another one is dead. */
  isKnownDead(instanceId: string): boolean;
  /** Another live server; undefined: it is dead, or its address is unknown. */
  otherServer(instanceId: string): Promise<OtherServer | undefined>;
}

export type Handlers = { readonly [Name in RouteName]: Handler<Routes[Name]> };
