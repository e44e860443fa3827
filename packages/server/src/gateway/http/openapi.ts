import swagger from "@fastify/swagger";
import { jsonSchemaTransform, jsonSchemaTransformObject } from "fastify-type-provider-zod";
import { fastifyApp } from "./fastify-app.ts";
import { documentRoutes } from "./register.ts";

/** The OpenAPI document of the table of routes. */
export async function openApiDocument(version: string): Promise<object> {
  const app = fastifyApp();
  await app.register(swagger, {
    openapi: {
      openapi: "3.1.0",
      info: {
        title: "sandboxer",
        version,
        description: "Sandboxes that you can pause on one machine and resume on another.",
      },
      components: { securitySchemes: { key: { type: "http", scheme: "bearer" } } },
      security: [{ key: [] }],
    },
    transform: jsonSchemaTransform,
    transformObject: jsonSchemaTransformObject,
  });
  // Swagger sees the routes of scopes that begin after it.
  await app.register(async (scope) => documentRoutes(scope));
  await app.ready();
  return app.swagger();
}
