import type { PatchBudget } from './budget.ts';
import { badPatch, orderPrefix, patchWord, withoutDirectives } from './directives.ts';
import { isJsonObject, type JsonObject } from './json.ts';

type Items = readonly unknown[];

/** Lists of single values are sets: what is there twice counts once. */
export function mergeValues(current: Items = [], added: Items = []): Items {
  return [...new Set([...current, ...added])];
}

export interface Merging {
  readonly current: Items | undefined;
  readonly changes: Items | undefined;
  readonly key: string;
  /** The value of `$setElementOrder`. */
  readonly order: Items | undefined;
  readonly mergeItem: (item: JsonObject, change: JsonObject) => JsonObject;
  readonly budget: PatchBudget;
}

/** Items of the patch change the ones of their key, or join at the end; `$patch` in an item says more. */
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

/** Where the items of each key are in a list: seldom more than one. */
class Buckets {
  readonly #key: string;
  readonly #items: Items;
  readonly #budget: PatchBudget;
  readonly #places = new Map<unknown, number[]>();

  /** The list may grow afterwards, and items may be exchanged for others of the same key. */
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

  /** The first place with an item of the same key which fits. */
  find(like: unknown, fits: (item: JsonObject) => boolean): number | undefined {
    return this.#places.get(keyOf(like, this.#key))?.find((place) => {
      this.#budget.spend(1);
      const item = this.#items[place];
      return isJsonObject(item) && fits(item);
    });
  }
}

/** Lists in which one key may stand for several items, as a port has one number for each protocol. */
const portKeys: readonly string[] = ['port', 'containerPort'];

/**
 * Whether a change is about an item. API servers look at the key alone, and so mix up ports of one number; here a port
 * of another protocol is another one wherever somebody speaks of more than one of that number.
 */
function sameItem(key: string, lists: readonly Items[]): (item: unknown, change: JsonObject) => boolean {
  if (!portKeys.includes(key)) return (item, change) => keyOf(item, key) === change[key];
  const shared = new Set(lists.flatMap((list) => twice(list.map((item) => keyOf(item, key)))));
  return (item, change) => {
    if (keyOf(item, key) !== change[key]) return false;
    const [is, wanted] = [keyOf(item, 'protocol'), change['protocol']];
    const isOther = is !== undefined && wanted !== undefined && is !== wanted;
    return !isOther || !shared.has(change[key]);
  };
}

function twice(values: Items): Items {
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
  /** The value of `$setElementOrder`. */
  readonly order: Items | undefined;
  /** The list before the patch. */
  readonly current: Items | undefined;
  /** Undefined for lists of single values. */
  readonly key: string | undefined;
  /** What the patch says of the list. */
  readonly value: Items | undefined;
}

/**
 * Brings what the patch knows of into the order it wants: that of `$setElementOrder`, or else of its own list. Items
 * only the server knows stay where they were among those that were there before.
 */
export function inOrder({ items, order, current, key, value = [] }: Ordering): Items {
  if (current === undefined && order === undefined) return items;
  const told = value.filter((item) => !isJsonObject(item) || item[patchWord] === undefined);
  if (order !== undefined) checkOrder(order, told, current ?? [], value, key);
  const replaces = value.some((item) => isJsonObject(item) && item[patchWord] === 'replace');
  const wanted = placesOf((order ?? (replaces ? [] : told)).map((item) => keyOf(item, key)));
  const wantedPlace = (item: unknown) => wanted.get(keyOf(item, key)) ?? -1;
  // As API servers do: where an item was deleted the first new one takes its place, and equal keys come together.
  const placed = replaces ? items : items.slice(0, current?.length ?? 0);
  const before = placesOf(placed.map((item) => keyOf(item, key)));
  const place = (item: unknown) => before.get(keyOf(item, key)) ?? -1;
  const known = items
    .filter((item) => wantedPlace(item) >= 0)
    .sort((a, b) => wantedPlace(a) - wantedPlace(b));
  const others = items.filter((item) => wantedPlace(item) < 0);
  return merged(
    known,
    others.toSorted((a, b) => place(a) - place(b)),
    place,
  );
}

/** Where each value is for the first time. */
function placesOf(values: Items): ReadonlyMap<unknown, number> {
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

/** A patch that changes an item has to say where it belongs; and of nothing there is no order. */
function checkOrder(order: Items, told: Items, current: Items, value: Items, key: string | undefined): void {
  if (current.length === 0 && value.length === 0)
    throw badPatch(`${orderPrefix} must be about a list that has items`);
  if (order.length === 0) return;
  const wanted = order.map((item) => keyOf(item, key));
  const first = placesOf(wanted);
  const last = new Map(wanted.map((value, place) => [value, place] as const));
  const places = told.map((item) => first.get(keyOf(item, key)) ?? -1);
  // Of a key that is there twice the patch may tell both.
  const isTwin = (place: number) => Number(last.get(wanted[place])) > place;
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
