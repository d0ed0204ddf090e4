import { KindTable, type ListMerge } from '../../kinds/index.ts';

/** The patch metadata of one field. */
export interface PatchField {
  readonly merge: ListMerge;
  /** The kind of the value, or of the list items; undefined for free-form fields. */
  readonly kind: string | undefined;
  /** Whether computed patches change single items or replace the whole list. */
  readonly computed: 'items' | 'whole-list';
}

const plain: PatchField = { merge: { by: 'whole' }, kind: undefined, computed: 'items' };

/**
 * Patch metadata of kinds that a kubelet writes but that are missing in the generated table of
 * kinds.
 */
const additionalFields: Readonly<Record<string, PatchField>> = {
  'CSINode.spec': { ...plain, kind: 'CSINodeSpec' },
  'CSINodeSpec.drivers': { ...plain, merge: { by: 'key', key: 'name', keeps: 'all-fields' } },
};

/**
 * Lists whose merge key is not unique, and which are therefore replaced: a node may have two
 * InternalIP addresses.
 */
const replacedFields: ReadonlySet<string> = new Set(['NodeStatus.addresses']);

/**
 * The merge rules for the fields of each kind. Create one instance per process; each kind is parsed
 * on first use.
 */
export class PatchSchema {
  readonly #table: KindTable;

  constructor(table: KindTable = new KindTable()) {
    this.#table = table;
  }

  field(kind: string | undefined, name: string): PatchField {
    if (kind === undefined) return plain;
    const path = `${kind}.${name}`;
    const extra = additionalFields[path];
    if (extra !== undefined) return extra;
    if (!this.#table.has(kind)) return name === 'metadata' ? { ...plain, kind: 'ObjectMeta' } : plain;
    const field = this.#table.fieldsOf(kind).get(name);
    if (field === undefined) return plain;
    return {
      merge: field.merge,
      kind: field.shape !== 'map' && this.#table.has(field.type) ? field.type : undefined,
      computed: replacedFields.has(path) ? 'whole-list' : 'items',
    };
  }
}
