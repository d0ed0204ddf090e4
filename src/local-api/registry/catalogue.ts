import type { ApiResource } from '../../api/index.ts';
import { KubelingError } from '../../lib/index.ts';
import type { ResourceEntry, ResourceStrategy, ResourceView } from '../api/api-types.ts';
import { frozen, type StoredObject } from '../api/stored-object.ts';
import { type ResourceDefinition, resourceTable, viewTable } from './resource-table.ts';

/** The resources of the API. */
export class Catalogue {
  readonly #entries: readonly ResourceEntry[];
  readonly #byPath: ReadonlyMap<string, ResourceEntry>;

  constructor(entries: readonly ResourceEntry[]) {
    this.#entries = entries;
    this.#byPath = new Map(entries.map((entry) => [pathOf(entry.resource), entry]));
  }

  /** All resources in discovery order. */
  get all(): readonly ResourceEntry[] {
    return this.#entries;
  }

  find(group: string, version: string, plural: string): ResourceEntry | undefined {
    return this.#byPath.get(`${group}/${version}/${plural}`);
  }

  /** Returns the catalogue entry of a resource; throws if it is not in the catalogue. */
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
 * Creates the catalogue from strategies by plural. Some resources, such as `events.events.k8s.io`,
 * serve the stored objects of another resource with its strategy: they are included only if `views`
 * has an entry for their plural and group.
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

/** Caches the converted form of each stored object. */
function memoizedView(view: ResourceView): ResourceView {
  const views = new WeakMap<StoredObject, StoredObject>();
  return {
    ...view,
    toView: (stored) => {
      const known = views.get(stored);
      if (known !== undefined) return known;
      const converted = frozen(view.toView(stored));
      views.set(stored, converted);
      return converted;
    },
  };
}
