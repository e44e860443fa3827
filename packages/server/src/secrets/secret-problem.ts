/** What is wrong with a source, as the end of a sentence. */
export class SecretProblem extends Error {}

/** The kernel takes variables of up to 128 KiB. */
export const MAX_SECRET_BYTES = 64 * 1024;
