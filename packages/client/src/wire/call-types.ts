import type {
  BodyInputOf,
  ParamsOf,
  QueryInputOf,
  QueryOf,
  ResponseOf,
  RouteName,
  Routes,
  StreamOf,
} from "@sandboxer/protocol";

/** Bytes to send. A stream or an iterable is sent once: what fails in its middle is not tried again. */
export type Bytes = string | Uint8Array | ArrayBuffer | Blob | ReadableStream<Uint8Array> | AsyncIterable<Uint8Array>;

export interface CallOptions {
  readonly signal?: AbortSignal | undefined;
  /** Refuses the call with `stale_epoch` unless the sandbox is at this epoch. */
  readonly epoch?: number | undefined;
}

export interface WireOptions extends CallOptions {
  /** For routes that take one; made up when absent. The same key again gives the first answer. */
  readonly idempotencyKey?: string | undefined;
  /** Another server of the same store. */
  readonly url?: string | undefined;
  /** How often to try at most, where that is other than what the client was made with. */
  readonly attempts?: number | undefined;
  /** Sent with `Prefer: respond-async`; see {@link Transport.call}. */
  readonly onProgress?: ((operation: OperationRecord) => void) | undefined;
}

export type OperationRecord = NonNullable<ResponseOf<Routes["getOperation"]>>;

/** Names whose answer is JSON or nothing. */
export type JsonRouteName = {
  [Name in RouteName]: Routes[Name] extends { response: StreamOf } ? never : Name;
}[RouteName];

/** Names whose answer is bytes. */
export type StreamRouteName = {
  [Name in RouteName]: Routes[Name] extends { response: StreamOf } ? Name : never;
}[RouteName];

export type Answer<Name extends JsonRouteName> = ResponseOf<Routes[Name]>;

/** What a query or body may hold; a value that the server coerces has the type that it is coerced to. */
type Given<Input, Output> = {
  [Key in keyof Input]: unknown extends Input[Key] ? (Key extends keyof Output ? Output[Key] : never) : Input[Key];
};

type QueryFor<Name extends RouteName> = Given<QueryInputOf<Routes[Name]>, QueryOf<Routes[Name]>>;
type BodyFor<Name extends RouteName> = Routes[Name] extends { body: StreamOf } ? Bytes : BodyInputOf<Routes[Name]>;

type Part<Key extends string, Value> = [Value] extends [undefined]
  ? { readonly [K in Key]?: undefined }
  : undefined extends Value
    ? { readonly [K in Key]?: Value }
    : object extends Value
      ? { readonly [K in Key]?: Value }
      : { readonly [K in Key]: Value };

/** The parameters, the query and the body of a route, as the protocol's table says. */
export type CallInput<Name extends RouteName> = Part<"params", ParamsOf<Routes[Name]>> &
  Part<"query", QueryFor<Name>> &
  Part<"body", BodyFor<Name>>;

/** Calls routes whose answer is JSON, or nothing. */
export interface Caller {
  call<Name extends JsonRouteName>(name: Name, input: CallInput<Name>, options?: WireOptions): Promise<Answer<Name>>;
}
