/**
 * Node's HTTP through `require`. An import evaluates each of its exports, and three of them load Node's fetch and
 * WebSocket, which no server needs to start: a tenth of the start-up time.
 */
export const { Agent, createServer, request, STATUS_CODES } = process.getBuiltinModule("node:http");
