import { KindTable, type ListMerge } from '../../kinds/index.ts';

/** The patch metadata of one field. */
export interface PatchField {
  readonly merge: ListMerge;
  /** The kind of the value or of list items; undefined for free-form fields. */
  readonly kind: string | undefined;
  /** Whether a computed patch changes items or replaces the list. */
  readonly computed: 'items' | 'whole-list';
}

const plain: PatchField = { merge: { by: 'whole' }, kind: undefined, computed: 'items' };

/**
 * Kinds that a kubelet writes and that are not in the table of kinds. Their metadata has the usual
 * fields.
 */
const additionalFields: Readonly<Record<string, PatchField>> = {
  'CSINode.spec': { ...plain, kind: 'CSINodeSpec' },
  'CSINodeSpec.drivers': { ...plain, merge: { by: 'key', key: 'name', keeps: 'all-fields' } },
};

/** Their key is not unique: a node may have two internal addresses. */
const replacedFields: ReadonlySet<string> = new Set(['NodeStatus.addresses']);

/**
 * The merge rules of the fields of each kind. One instance per process; kinds are read on first
 * use.
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
