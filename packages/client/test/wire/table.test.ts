import { ROUTES, type Route } from "@sandboxer/protocol";
import { expect, test } from "vitest";
import { z } from "zod";
import { fromWire, toWire } from "../../src/wire/naming.ts";
import { ROUTE_TABLE, type PlainRoute } from "../../src/wire/route-table.ts";

const routes = Object.entries(ROUTES) as [keyof typeof ROUTES, Route][];

test("the client's table matches the protocol's", () => {
  expect(Object.keys(ROUTE_TABLE)).toEqual(Object.keys(ROUTES));
  for (const [name, route] of routes) {
    const { body, response } = route;
    const { repeatable: _, ...row }: PlainRoute = ROUTE_TABLE[name];
    expect([name, row]).toEqual([
      name,
      {
        method: route.method,
        path: route.path,
        ...(body !== undefined && "stream" in body ? { contentType: body.stream } : {}),
        ...(response !== undefined && "stream" in response ? { accept: response.stream } : {}),
        ...(route.idempotent === undefined ? {} : { idempotent: true }),
      },
    ]);
  }
});

/** Every field of a schema, and whether its value is a map with user-defined keys. */
function fieldsOf(schema: z.ZodType, io: "input" | "output"): { name: string; isMap: boolean }[] {
  const found: { name: string; isMap: boolean }[] = [];
  const look = (node: unknown): void => {
    if (typeof node !== "object" || node === null) return;
    const { properties } = node as {
      properties?: Record<string, { additionalProperties?: unknown; properties?: object }>;
    };
    for (const [name, field] of Object.entries(properties ?? {})) {
      const isMap = typeof field.additionalProperties === "object" && field.properties === undefined;
      found.push({ name, isMap });
    }
    for (const child of Object.values(node)) look(child);
  };
  look(z.toJSONSchema(schema, { io, unrepresentable: "any" }));
  return found;
}

function schemas(part: "body" | "response" | "query"): z.ZodType[] {
  return routes
    .filter(([name]) => !name.endsWith("Profile") && !name.endsWith("Profiles"))
    .map(([, route]) => route[part])
    .filter((schema) => schema !== undefined && !("stream" in schema)) as z.ZodType[];
}

test("names are converted in both directions, and only maps keep their keys, for the whole table", () => {
  for (const schema of schemas("response")) {
    for (const { name, isMap } of fieldsOf(schema, "output")) {
      const [[key, value] = []] = Object.entries(fromWire({ [name]: { a_b: 1 } }) as object);
      const expected = isMap || name === "result" ? { a_b: 1 } : { aB: 1 };
      expect([name, value]).toEqual([name, expected]);
      expect(key).not.toContain("_");
    }
  }
  for (const schema of [...schemas("body"), ...schemas("query")]) {
    for (const { name, isMap } of fieldsOf(schema, "input")) {
      const camel = Object.keys(fromWire({ [name]: 0 }))[0] ?? "";
      expect(toWire({ [camel]: { aB: 1 } } as never)).toEqual({ [name]: isMap ? { aB: 1 } : { a_b: 1 } });
    }
  }
});
