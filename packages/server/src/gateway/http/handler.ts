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
import type { Principal } from "../access/principal.ts";

/** Who calls. Made by the gateway's authentication. */
export interface Caller {
  readonly principal: Principal;
  /** Where from, for the audit log. */
  readonly address: string | undefined;
  /** Keeps the idempotency keys of different callers apart. */
  readonly id: string;
  readonly scope: Scope;
  /** The key that was shown, for calls to another server of the same store on the caller's behalf. */
  readonly authorization: string | undefined;
}

/** One request, checked against its route. */
export interface Call<R extends Route> {
  readonly params: ParamsOf<R>;
  readonly query: QueryOf<R>;
  readonly body: BodyOf<R>;
  /** The bytes of the body, for routes that take a stream. */
  readonly stream: Readable;
  /** Aborts when the client has gone away. */
  readonly signal: AbortSignal;
  readonly caller: Caller;
  /** From `If-Sandbox-Epoch`. */
  readonly epoch: number | undefined;
  readonly idempotencyKey: string | undefined;
  /** From `Last-Event-ID`: where a browser's EventSource was when it was cut. */
  readonly lastEventId: string | undefined;
  /** The record of the whole call, for routes that have one. To be handed on to the manager. */
  readonly options: VerbOptions;
  /** Whether the client's `Accept` names this type. */
  readonly accepts: (contentType: string) => boolean;
}

/** An answer that is not JSON: bytes as they come. */
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

/** A route without a body in its answer has nothing to give. */
type Answer<R extends Route> = undefined extends ResponseOf<R> ? void : ResponseOf<R>;

export type Handler<R extends Route> = (call: Call<R>) => Promise<Answer<R> | StreamAnswer>;

/** What stands behind the routes. */
export interface Service {
  readonly handlers: Handlers;
  openOperation(kind: OperationKind, subject: OperationSubject, callerId: string): Operation;
  /** Of this server's ownership of a sandbox; undefined: it has none. */
  epochOf(sandboxId: string): number | undefined;
  /** Why a sandbox cannot be worked with here now; undefined: it can. */
  whyNotHere(sandboxId: string): Promise<unknown>;
  /** The server that has a sandbox which is not here; undefined: there is none that could be asked. */
  ownerElsewhere(sandboxId: string): Promise<OtherServer | undefined>;
  /** Another server that lives; undefined: it does not, or nobody knows where it is. */
  otherServer(instanceId: string): Promise<OtherServer | undefined>;
}

export type Handlers = { readonly [Name in RouteName]: Handler<Routes[Name]> };
