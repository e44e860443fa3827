import { z } from "zod";

/** A TCP port inside a sandbox. */
export const portSchema = z.number().int().min(1).max(65_535);

export const portsSchema = z.array(portSchema).max(64);
