import type { KindTable } from '../../../kinds/index.ts';

/** A kind at the top of documents, with the group and version it is known by. */
export interface TopKind {
  readonly tableName: string;
  readonly known: { readonly group: string; readonly version: string; readonly kind: string };
}

const metaPackage = 'io.k8s.apimachinery.pkg.apis.meta.v1';

/** Where the kinds that every group uses begin. */
const metaRoots = [
  'ObjectMeta',
  'ListMeta',
  'LabelSelector',
  'FieldSelectorRequirement',
  'Condition',
  'Status',
  'DeleteOptions',
];

/** Kinds of the core group that only others use. */
const coreRoots = ['TopologySelectorTerm'];

/** Where two groups have a kind of one name, the table has something in front of one of them. */
const ownNames: ReadonlyMap<string, string> = new Map([
  ['EventsEvent', 'Event'],
  ['EventsEventList', 'EventList'],
  ['EventsEventSeries', 'EventSeries'],
  ['RuntimeClassOverhead', 'Overhead'],
  ['RuntimeClassScheduling', 'Scheduling'],
  ['CSIDriverTokenRequest', 'TokenRequest'],
]);

/** What a kind is called in documents: its own name behind that of the group that owns it. */
export class SchemaNames {
  readonly #table: KindTable;
  readonly #owners = new Map<string, string>();

  /** Kinds own what they are made of, the first of several what they share; those of the core group come first. */
  constructor(table: KindTable, tops: readonly TopKind[]) {
    this.#table = table;
    for (const kind of metaRoots) this.#own(kind, metaPackage);
    for (const kind of coreRoots) this.#own(kind, packageOf({ group: '', version: 'v1' }));
    for (const { tableName, known } of tops.toSorted(coreFirst)) this.#own(tableName, packageOf(known));
  }

  nameOf(kind: string): string {
    return `${this.#owners.get(kind) ?? metaPackage}.${ownNames.get(kind) ?? kind}`;
  }

  ref(kind: string): string {
    return `#/components/schemas/${this.nameOf(kind)}`;
  }

  #own(kind: string, owner: string): void {
    if (this.#owners.has(kind) || !this.#table.has(kind)) return;
    this.#owners.set(kind, owner);
    for (const { type } of this.#table.fieldsOf(kind).values()) this.#own(type, owner);
  }
}

function coreFirst(a: TopKind, b: TopKind): number {
  return Number(a.known.group !== '') - Number(b.known.group !== '');
}

/** Such as `io.k8s.api.core.v1` for the core group. */
function packageOf({ group, version }: { readonly group: string; readonly version: string }): string {
  const name = group === '' ? 'core' : (group.split('.')[0] ?? group);
  return `io.k8s.api.${name}.${version}`;
}
