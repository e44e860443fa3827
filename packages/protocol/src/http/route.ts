import type { z } from "zod";
import type { OperationKind } from "./operation-record.ts";

/** The scope of a key: `read` views, `use` works with sandboxes, `admin` manages keys and servers. */
export const SCOPES = ["read", "use", "admin"] as const;
export type Scope = (typeof SCOPES)[number];

export type Method = "GET" | "POST" | "PUT" | "PATCH" | "DELETE";

/** Bytes that are not JSON: never complete in memory. */
export interface StreamOf {
  readonly stream: string;
}

/**
 * One operation of the HTTP API. Validation, types, the OpenAPI document and the client's methods all come from this
 * description.
 */
export interface Route {
  readonly method: Method;
  /** Parameters are written `{name}`. */
  readonly path: string;
  readonly summary: string;
  readonly tag: string;
  readonly scope: Scope;
  readonly params?: z.ZodObject;
  readonly query?: z.ZodObject;
  readonly body?: z.ZodType | StreamOf;
  /** The status of success. */
  readonly status: 200 | 201 | 204;
  /** Absent with 204. If there are several, the client's `Accept` chooses; the first is the default. */
  readonly response?: z.ZodType | StreamOf;
  readonly alternatives?: readonly StreamOf[];
  /** Accepts `Idempotency-Key`: the same key again returns the first response. */
  readonly idempotent?: true;
  /** The sandbox itself remembers the keys it has seen, wherever it is; no response is kept beside it. */
  readonly rememberedBySandbox?: true;
  /** Changes a sandbox, so that `If-Sandbox-Epoch` is compared. */
  readonly fenced?: true;
  /** Accepts `Prefer: respond-async`: 202 and the operation, which continues. */
  readonly operation?: OperationKind;
}

/** Keeps the literal types of a description. */
export function route<const R extends Route>(description: R): R {
  return description;
}

export type ParamsOf<R extends Route> = R["params"] extends z.ZodType ? z.output<R["params"]> : undefined;
export type QueryOf<R extends Route> = R["query"] extends z.ZodType ? z.output<R["query"]> : undefined;
export type BodyOf<R extends Route> = R["body"] extends z.ZodType ? z.output<R["body"]> : undefined;
export type BodyInputOf<R extends Route> = R["body"] extends z.ZodType ? z.input<R["body"]> : undefined;
export type QueryInputOf<R extends Route> = R["query"] extends z.ZodType ? z.input<R["query"]> : undefined;
export type ResponseOf<R extends Route> = R["response"] extends z.ZodType ? z.output<R["response"]> : undefined;
