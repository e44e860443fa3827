import { PythonClasses } from "./python-classes.ts";
import type { OpenApi, Operation, Schema } from "./schema.ts";

/** The settings of calls that take many, as typed dictionaries: users pass them as keyword arguments. */
const SETTINGS: Readonly<Record<string, string>> = {
  createSandbox: "SandboxSettings",
  acquireSandbox: "AcquireSettings",
  restoreSnapshot: "RestoreSettings",
  moveSandbox: "MoveSettings",
  forkSandbox: "ForkSettings",
  createSnapshot: "SnapshotSettings",
  updateSandbox: "SandboxChange",
  updateSnapshot: "SnapshotChange",
};

const FILTERS: Readonly<Record<string, string>> = {
  listSandboxes: "SandboxFilter",
  listSnapshots: "SnapshotFilter",
  listOperations: "OperationFilter",
};

/** Calls whose answers the SDK turns into handles: sandboxes and processes. */
const OWN_CLASS: ReadonlySet<string> = new Set([
  "createSandbox",
  "acquireSandbox",
  "restoreSnapshot",
  "moveSandbox",
  "forkSandbox",
  "exec",
]);

const HEAD = `"""The records and settings of the server's API. Generated from /openapi.json by \`npm run reference\`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypedDict

if TYPE_CHECKING:
    from typing_extensions import Required
`;

/** The module `sandboxer.models`: a class for each record that a server answers with, and for each set of settings. */
export function pythonModels(document: OpenApi): string {
  const classes = new PythonClasses(document.components.schemas);
  const operations = Object.values(document.paths).flatMap((path) => Object.values(path));
  for (const operation of operations) {
    const answer = answerOf(operation);
    if (answer !== undefined && !OWN_CLASS.has(operation.operationId)) classes.addAnswer(operation.operationId, answer);
    const settings = SETTINGS[operation.operationId];
    const body = operation.requestBody?.content["application/json"]?.schema;
    if (settings !== undefined && body !== undefined) classes.addSettings(settings, body);
    const filter = FILTERS[operation.operationId];
    if (filter !== undefined) classes.addSettings(filter, queryOf(operation));
  }
  const { names, text } = classes;
  const all = names.map((name) => `    "${name}",\n`).join("");
  return `${HEAD}\n__all__ = [\n${all}]\n\n\n${text}`;
}

function answerOf({ responses }: Operation): Schema | undefined {
  return (responses["200"] ?? responses["201"])?.content?.["application/json"]?.schema;
}

/** The filters of a list; the client reads all pages. */
function queryOf({ parameters = [] }: Operation): Schema {
  const given = parameters.filter(({ in: place, name }) => place === "query" && name !== "cursor");
  const properties = given.map(
    ({ name, schema, description }) =>
      [name, { ...schema, ...(description === undefined ? {} : { description }) }] as const,
  );
  return { type: "object", properties: Object.fromEntries(properties) };
}
