import { operationRecordSchema, type Route, type RouteName, type StreamOf } from "@sandboxer/protocol";
import type { FastifySchema } from "fastify";
import { z } from "zod";

/** For validation, and for the OpenAPI document. */
export function routeSchema(name: RouteName, route: Route): FastifySchema {
  const { params, query, body, response, summary, tag, status } = route;
  return {
    operationId: name,
    summary,
    tags: [tag],
    ...(params === undefined ? {} : { params }),
    ...(query === undefined ? {} : { querystring: query }),
    ...(body === undefined || isStream(body) ? {} : { body: optionalBody(body) }),
    response: {
      [status]: response === undefined || isStream(response) ? z.any() : response,
      ...(route.operation === undefined ? {} : { 202: operationRecordSchema }),
    },
  };
}

/** A request without a body has none to be wrong, when everything in it is optional. */
function optionalBody(body: z.ZodType): z.ZodType {
  return z.preprocess((value) => value ?? undefined, body);
}

function isStream(body: z.ZodType | StreamOf): body is StreamOf {
  return "stream" in body;
}
