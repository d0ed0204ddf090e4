export { applyPatch } from './apply.ts';
export { mostValues } from './budget.ts';
export { nodeStatusPatch, type PodStatusChange, podStatusPatch } from './computed.ts';
export { isJsonObject, type JsonObject, sameValue, withoutEmptyFields } from './json.ts';
export { type PatchField, PatchSchema } from './schema.ts';
export { strategicDiff } from './strategic-diff.ts';
