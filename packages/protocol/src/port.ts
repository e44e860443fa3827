import { z } from "zod";

/** A TCP port inside a sandbox. */
export const portSchema = z.number().int().min(1).max(65_535);

export const portsSchema = z.array(portSchema).max(64);

/** Ports whose signed links a sandbox may have withdrawn. */
export const MAX_LINK_ROUNDS = 256;

export const linkRoundsSchema = z.record(z.string().regex(/^[1-9]\d{0,4}$/), z.number().int().min(1));
