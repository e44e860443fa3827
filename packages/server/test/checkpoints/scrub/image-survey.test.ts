import { expect, test } from "vitest";
import { inFamilies } from "../../../src/checkpoints/scrub/image-survey.ts";

const image = (key: string, ...packs: string[]) => ({ key, sizeBytes: 1, packs });

test("images that share packs, directly or through others, follow one another", () => {
  const images = [
    image("a1", "p"),
    image("b1", "x"),
    image("a2", "q"),
    image("none"),
    image("b2", "x", "y"),
    image("a3", "q", "p"),
  ];
  const order = inFamilies(images).map(({ key }) => key);
  const families = order.map((key) => key[0]).join("");
  expect(order.toSorted()).toEqual(images.map(({ key }) => key).toSorted());
  expect(families.replaceAll(/(.)\1+/g, "$1")).toHaveLength(3);
});
