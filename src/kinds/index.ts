export { type DecodedKind, decodeJson, decodeTree, type KindFinding } from './decode.ts';
export { FieldPath } from './field-path.ts';
export * from './gen/kinds.ts';
export {
  type KindField,
  type KindFields,
  KindTable,
  type ListMerge,
  tableNameOf,
  type WireField,
} from './table.ts';
