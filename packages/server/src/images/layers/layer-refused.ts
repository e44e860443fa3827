/** Why a layer is not used. */
export class LayerRefused extends Error {}
