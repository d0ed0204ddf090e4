import type { ApiResource } from '../../api/index.ts';
import { KubelingError } from '../../lib/index.ts';
import type { ResourceEntry, ResourceStrategy, ResourceView } from '../api/api-types.ts';
import { frozen, type StoredObject } from '../api/stored-object.ts';
import { type ResourceDefinition, resourceTable, viewTable } from './resource-table.ts';

/** All resources there are. */
export class Catalogue {
  readonly #entries: readonly ResourceEntry[];
  readonly #byPath: ReadonlyMap<string, ResourceEntry>;

  constructor(entries: readonly ResourceEntry[]) {
    this.#entries = entries;
    this.#byPath = new Map(entries.map((entry) => [pathOf(entry.resource), entry]));
  }

  /** In the order in which they are listed to those who ask what there is. */
  get all(): readonly ResourceEntry[] {
    return this.#entries;
  }

  find(group: string, version: string, plural: string): ResourceEntry | undefined {
    return this.#byPath.get(`${group}/${version}/${plural}`);
  }

  /** Of a resource that must be there. */
  of(resource: ApiResource): ResourceEntry {
    const found = this.#byPath.get(pathOf(resource));
    if (found !== undefined) return found;
    throw new KubelingError('BUG', `Cannot serve ${pathOf(resource)}: it is not in the catalogue`);
  }
}

function pathOf({ group, version, plural }: ApiResource): string {
  return `${group}/${version}/${plural}`;
}

/**
 * The catalogue with the rules given, by plural. A resource that shows objects of another one is in it only with the
 * view it has of them, by its plural and group, such as `events.events.k8s.io`; its rules are those of the other one.
 */
export function createCatalogue(
  rules: Readonly<Record<string, ResourceStrategy>>,
  views: Readonly<Record<string, ResourceView>> = {},
): Catalogue {
  const entryOf = ({ traits, ...row }: ResourceDefinition): ResourceEntry => ({
    ...row,
    strategy: { ...traits, ...rules[row.resource.plural] },
  });
  const viewEntries = viewTable().flatMap((row) => {
    const view = views[`${row.resource.plural}.${row.resource.group}`];
    return view === undefined ? [] : [{ ...entryOf(row), view: memoizedView(view) }];
  });
  return new Catalogue([...resourceTable().map(entryOf), ...viewEntries]);
}

/** One face for each stored object, however many look at it. */
function memoizedView(view: ResourceView): ResourceView {
  const faces = new WeakMap<StoredObject, StoredObject>();
  return {
    ...view,
    toView: (kept) => {
      const known = faces.get(kept);
      if (known !== undefined) return known;
      const face = frozen(view.toView(kept));
      faces.set(kept, face);
      return face;
    },
  };
}
