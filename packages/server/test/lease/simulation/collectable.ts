/** A stored object that belongs to a sandbox, by the epoch of the instance that wrote it. */
export interface StoredObject {
  readonly name: string;
  readonly epoch: number;
}

/**
 * What an owner may remove after a commit, without looking at a clock: objects of epochs before its own that its head does
 * not reach. What its own epoch wrote may be part of a publish under way. A checkpoint references its parent's closure and
 * its own epoch, nothing else, so that no later head reaches what an earlier one did not; therefore an owner that was
 * overtaken meanwhile, and does not know, removes nothing that anybody needs.
 */
export function collectable(
  objects: Iterable<StoredObject>,
  owner: { readonly epoch: number; readonly reachable: ReadonlySet<string> },
): readonly string[] {
  const names: string[] = [];
  for (const { name, epoch } of objects) {
    if (epoch < owner.epoch && !owner.reachable.has(name)) names.push(name);
  }
  return names;
}
