import type { PatchBudget } from './budget.ts';
import { badPatch, orderPrefix, patchWord, withoutDirectives } from './directives.ts';
import { isJsonObject, type JsonObject } from './json.ts';

type Items = readonly unknown[];

/** Merges lists of scalar values, which are sets without duplicates. */
export function mergeValues(current: Items = [], added: Items = []): Items {
  return [...new Set([...current, ...added])];
}

export interface Merging {
  readonly current: Items | undefined;
  readonly changes: Items | undefined;
  readonly key: string;
  /** The value of the `$setElementOrder` directive. */
  readonly order: Items | undefined;
  readonly mergeItem: (item: JsonObject, change: JsonObject) => JsonObject;
  readonly budget: PatchBudget;
}

/**
 * Merges the items of a patch into a list: an item with the same key as an existing item changes
 * that item, and any other item is appended, unless `$patch` in the item selects another action.
 */
export function mergeItems({ current, changes = [], key, order = [], mergeItem, budget }: Merging): Items {
  const parts = sorted(changes, key);
  if (current === undefined || parts.replaces) return parts.others.map((item) => withoutDirectives(item));
  const isSame = sameItem(key, [current, changes, order]);
  const deleted = new Buckets(key, parts.deleted, budget);
  const kept = current.filter((item) => deleted.find(item, (change) => isSame(item, change)) === undefined);
  const known = new Buckets(key, kept, budget);
  for (const change of parts.others) {
    const at = known.find(change, (item) => isSame(item, change));
    const item = at === undefined ? undefined : kept[at];
    if (at !== undefined && isJsonObject(item)) kept[at] = mergeItem(item, change);
    else known.add(kept.push(mergeItem({}, change)) - 1);
  }
  return kept;
}

/** Maps each key in a list to the indexes of its items, of which there is rarely more than one. */
class Buckets {
  readonly #key: string;
  readonly #items: Items;
  readonly #budget: PatchBudget;
  readonly #places = new Map<unknown, number[]>();

  /**
   * Indexes the items of the list. Afterwards the caller may append items to the list, and may
   * replace items by others with the same key.
   */
  constructor(key: string, items: Items, budget: PatchBudget) {
    this.#key = key;
    this.#items = items;
    this.#budget = budget;
    for (const place of items.keys()) this.add(place);
  }

  add(place: number): void {
    const key = keyOf(this.#items[place], this.#key);
    const places = this.#places.get(key);
    if (places === undefined) this.#places.set(key, [place]);
    else places.push(place);
  }

  /**
   * Returns the index of the first item that has the same key as the given value and for which
   * `fits` holds.
   */
  find(like: unknown, fits: (item: JsonObject) => boolean): number | undefined {
    return this.#places.get(keyOf(like, this.#key))?.find((place) => {
      this.#budget.spend(1);
      const item = this.#items[place];
      return isJsonObject(item) && fits(item);
    });
  }
}

/**
 * Merge keys that may be equal in several items of a list, for example one port number with several
 * protocols.
 */
const portKeys: readonly string[] = ['port', 'containerPort'];

/**
 * Decides whether a patch item changes a list item. API servers compare only the key and confuse
 * ports with the same number. This function also compares the protocol if the number occurs several
 * times in either list.
 */
function sameItem(key: string, lists: readonly Items[]): (item: unknown, change: JsonObject) => boolean {
  if (!portKeys.includes(key)) return (item, change) => keyOf(item, key) === change[key];
  const shared = new Set(lists.flatMap((list) => duplicated(list.map((item) => keyOf(item, key)))));
  return (item, change) => {
    if (keyOf(item, key) !== change[key]) return false;
    const [is, expected] = [keyOf(item, 'protocol'), change['protocol']];
    const isOther = is !== undefined && expected !== undefined && is !== expected;
    return !isOther || !shared.has(change[key]);
  };
}

function duplicated(values: Items): Items {
  const seen = new Set<unknown>();
  return values.filter((value) => seen.size === seen.add(value).size);
}

interface SortedChanges {
  readonly replaces: boolean;
  readonly deleted: readonly JsonObject[];
  readonly others: readonly JsonObject[];
}

function sorted(changes: Items, key: string): SortedChanges {
  const items = changes.map((item) => checkedItem(item, key));
  const says = (word: string) => items.filter((item) => item[patchWord] === word);
  const [replacing, deleting] = [says('replace'), says('delete')];
  return {
    replaces: replacing.length > 0,
    deleted: deleting,
    others: items.filter((item) => item[patchWord] !== 'replace' && item[patchWord] !== 'delete'),
  };
}

function checkedItem(item: unknown, key: string): JsonObject {
  if (!isJsonObject(item)) throw badPatch(`an item of a list merged by ${key} must be an object`);
  const word = item[patchWord];
  if (word !== undefined && word !== 'replace' && word !== 'delete')
    throw badPatch(
      `${patchWord} of an item must be replace or delete: current value is ${JSON.stringify(word)}`,
    );
  if (word !== 'replace' && item[key] === undefined)
    throw badPatch(`an item of a list merged by ${key} must have ${key}`);
  return item;
}

export interface Ordering {
  readonly items: Items;
  /** The value of the `$setElementOrder` directive. */
  readonly order: Items | undefined;
  /** The list before the patch. */
  readonly current: Items | undefined;
  /** The merge key; undefined for lists of scalar values. */
  readonly key: string | undefined;
  /** The value of the list in the patch. */
  readonly value: Items | undefined;
}

/**
 * Orders a merged list by `$setElementOrder`, or else by the order of the patch. Items that exist
 * only on the server keep their position between their neighbors.
 */
export function inOrder({ items, order, current, key, value = [] }: Ordering): Items {
  if (current === undefined && order === undefined) return items;
  const ordered = value.filter((item) => !isJsonObject(item) || item[patchWord] === undefined);
  if (order !== undefined) checkOrder(order, ordered, current ?? [], value, key);
  const replaces = value.some((item) => isJsonObject(item) && item[patchWord] === 'replace');
  const desired = indexesOf((order ?? (replaces ? [] : ordered)).map((item) => keyOf(item, key)));
  const desiredIndex = (item: unknown) => desired.get(keyOf(item, key)) ?? -1;
  // Like API servers, puts the first new item in the position of a deleted one, and makes equal
  // keys adjacent.
  const placed = replaces ? items : items.slice(0, current?.length ?? 0);
  const before = indexesOf(placed.map((item) => keyOf(item, key)));
  const place = (item: unknown) => before.get(keyOf(item, key)) ?? -1;
  const known = items
    .filter((item) => desiredIndex(item) >= 0)
    .sort((a, b) => desiredIndex(a) - desiredIndex(b));
  const others = items.filter((item) => desiredIndex(item) < 0);
  return merged(
    known,
    others.toSorted((a, b) => place(a) - place(b)),
    place,
  );
}

/** Maps each value of the list to its first index. */
function indexesOf(values: Items): ReadonlyMap<unknown, number> {
  return new Map(values.map((value, place) => [value, place] as const).reverse());
}

function merged(known: Items, others: Items, place: (item: unknown) => number): Items {
  let taken = 0;
  const result: unknown[] = [];
  for (const item of known) {
    const end = place(item);
    for (; end >= 0 && taken < others.length && place(others[taken]) < end; taken++)
      result.push(others[taken]);
    result.push(item);
  }
  return result.concat(others.slice(taken));
}

/**
 * Rejects a patch that changes items which its `$setElementOrder` does not contain. An empty
 * `$setElementOrder` counts as none.
 */
function checkOrder(
  order: Items,
  ordered: Items,
  current: Items,
  value: Items,
  key: string | undefined,
): void {
  if (current.length === 0 && value.length === 0)
    throw badPatch(`${orderPrefix} must be about a list that has items`);
  if (order.length === 0) return;
  const desired = order.map((item) => keyOf(item, key));
  const first = indexesOf(desired);
  const last = new Map(desired.map((value, place) => [value, place] as const));
  const places = ordered.map((item) => first.get(keyOf(item, key)) ?? -1);
  // If `$setElementOrder` contains a key twice, consecutive items of the patch may have the same
  // key.
  const isTwin = (place: number) => Number(last.get(desired[place])) > place;
  const isSorted = places.every((place, index) => {
    const previous = places[index - 1] ?? -1;
    return place > previous || (place >= 0 && place === previous && isTwin(place));
  });
  if (!isSorted) throw badPatch(`the list of a patch must agree with its ${orderPrefix} list`);
}

function keyOf(item: unknown, key: string | undefined): unknown {
  if (key === undefined) return item;
  return isJsonObject(item) ? item[key] : undefined;
}
