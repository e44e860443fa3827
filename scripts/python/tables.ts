import { ERRORS } from "@sandboxer/protocol/errors";
import { isRepeatable, ROUTE_TABLE, type PlainRoute } from "../../packages/client/src/wire/route-table.ts";

/** The module `sandboxer._tables`: the routes as the TypeScript SDK has them, and the errors of the protocol. */
export function pythonTables(): string {
  const routes = Object.entries<PlainRoute>(ROUTE_TABLE).map(([name, route]) => {
    const facts = [
      text(route.method),
      text(route.path),
      `accept=${text(route.accept ?? "application/json")}`,
      ...(route.contentType === undefined ? [] : [`content_type=${text(route.contentType)}`]),
      ...(route.idempotent === true ? ["idempotent=True"] : []),
      ...(isRepeatable(route) ? [] : ["repeatable=False"]),
    ];
    return `    ${text(name)}: Route(\n${facts.map((fact) => `        ${fact},\n`).join("")}    ),\n`;
  });
  const errors = Object.entries(ERRORS).map(
    ([code, { httpStatus, retryable, hint }]) =>
      `    ${text(code)}: ErrorRow(\n        ${httpStatus},\n        ${retryable ? "True" : "False"},\n        ${text(hint)},\n    ),\n`,
  );
  return `"""The routes and the error codes of the server. Generated from the protocol by \`npm run reference\`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Route:
    method: str
    path: str
    accept: str
    content_type: str | None = None
    #: It takes an Idempotency-Key.
    idempotent: bool = False
    #: Whether it may be sent again if the outcome of the first request is unknown.
    repeatable: bool = True


@dataclass(frozen=True)
class ErrorRow:
    status: int
    retryable: bool
    hint: str


ROUTES: dict[str, Route] = {
${routes.join("")}}

ERRORS: dict[str, ErrorRow] = {
${errors.join("")}}
`;
}

function text(value: string): string {
  return JSON.stringify(value);
}
