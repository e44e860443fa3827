import { timingSafeEqual } from "node:crypto";

/** Compares two texts in constant time. */
export function isSameSecret(shown: string, right: string): boolean {
  const [left, other] = [Buffer.from(shown), Buffer.from(right)];
  return left.byteLength === other.byteLength && timingSafeEqual(left, other);
}
