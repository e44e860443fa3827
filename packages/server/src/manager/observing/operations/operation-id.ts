import { randomUUID } from "node:crypto";

/** The id of an operation names the server that runs it, so that every server of the store finds it. */
export function operationId(instanceId: string): string {
  return `${randomUUID()}.${instanceId}`;
}

/** Undefined for ids of earlier releases. */
export function serverOfOperation(id: string): string | undefined {
  return /^[0-9a-f-]{36}\.([0-9a-f-]{36})$/.exec(id)?.[1];
}
