export { applyPatch } from './apply.ts';
export { mostValues } from './budget.ts';
export { isJsonObject, type JsonObject, sameValue, withoutEmptyFields } from './json.ts';
export { type PatchField, PatchSchema } from './schema.ts';
export { nodeStatusPatch, type PodStatusChange, podStatusPatch, strategicDiff } from './strategic-diff.ts';
